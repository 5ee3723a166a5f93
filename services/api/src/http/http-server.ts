import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { encodeCrockford } from '#contracts/crockford';
import { addHealthRoutes, type Condition } from '#runtime/http/health';
import { lingerAfterAnswers } from '#runtime/http/linger-after-answers';
import type { Log } from '#runtime/log';
import { PROBLEMS, refuse, type Refusal } from '../problem/problem-table';
import { addDocsPages } from './docs-pages';
import type { Door } from './door';
import { endpointOf } from './endpoint';
import { openApiDocument } from './openapi';
import { ProblemFilter } from './problem-filter';
import { BODY_LIMIT_BYTES, readJsonBodies } from './read-json-body';
import { refuseOnSocket } from './refuse-on-socket';

const CORRELATION_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

function newCorrelationId(): string {
  return `cor_${encodeCrockford(randomBytes(16))}`;
}

/** Nest on Fastify, with our body reader, our problems, and the documentation. Not listening yet. */
export async function createHttpServer(
  module: DynamicModule,
  door: Door,
  condition: Condition,
  log: Log,
  { headersDeadlineMs, bodyDeadlineMs }: { headersDeadlineMs: number; bodyDeadlineMs: number },
): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT_BYTES,
    // The longest name is an external id of 128 characters, escaped.
    routerOptions: { maxParamLength: 400 },
    genReqId: (request: { headers: Record<string, string | string[] | undefined> }) => {
      const given = request.headers['x-correlation-id'];
      return typeof given === 'string' && CORRELATION_ID.test(given) ? given : newCorrelationId();
    },
    // Ours is the one log; Fastify's would print URLs and headers.
    logger: false,
    // Uploads may take long and JSON bodies have a deadline of their own, so that of the server is for headers only.
    requestTimeout: 0,
    http: {
      headersTimeout: headersDeadlineMs,
      connectionsCheckingInterval: Math.max(50, Math.min(5_000, headersDeadlineMs / 4)),
      // It would be missed without a word; the hook below says what is missing.
      requireHostHeader: false,
    },
    clientErrorHandler: (error: Error, socket: Socket) => refuseUnread(error, socket),
    return503OnClosing: false,
    // Paths that can't be read at all, or name something longer than any name.
    frameworkErrors: (_error: Error, request: FastifyRequest, reply: FastifyReply) => {
      reply.header('x-correlation-id', request.id);
      door.refuse(reply, request, refuse('not_found'));
    },
  } as ConstructorParameters<typeof FastifyAdapter>[0]);
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  const server = adapter.getInstance() as unknown as FastifyInstance;
  const lingering = lingerAfterAnswers(server.server);
  const refuseUnread = refuseOnSocket(server.server, { origin: door.origin, newCorrelationId, headersDeadlineMs, lingering });
  // Without this the HTTP server answers by itself; now the hook below does.
  server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
  readJsonBodies(server, bodyDeadlineMs);
  let closing = false;
  server.addHook('preClose', (done) => {
    closing = true;
    lingering.close();
    done();
  });
  server.addHook('onRequest', async (request, reply) => {
    reply.header('x-correlation-id', request.id);
    const endpoint = endpointOf(request);
    const refusal = refusedByHead(request, closing) ?? (endpoint ? await door.knock(endpoint, request) : null);
    if (!refusal) return;
    door.refuse(reply, request, refusal);
    return reply;
  });
  addHealthRoutes(server, condition);
  server.get('/errors/:code', (request, reply) => {
    const { code } = request.params as { code: string };
    const known = Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code as keyof typeof PROBLEMS] : undefined;
    if (!known) return reply.callNotFound();
    const [status, title, action] = known;
    return reply.send({ code, status, title, action });
  });
  app.useGlobalFilters(new ProblemFilter(door, log));
  addDocsPages(server, () => openApiDocument('1'));
  return app;
}

/** What is wrong with a request whatever it asks for. */
function refusedByHead({ headers, raw }: FastifyRequest, closing: boolean): Refusal | null {
  if (closing)
    return refuse('unavailable', { detail: 'This instance stops; repeat the request.', headers: { 'retry-after': '1' } });
  if (headers.host === undefined && raw.httpVersion !== '1.0') {
    return refuse('request_unreadable', { errors: [{ header: 'Host', code: 'required', detail: 'HTTP/1.1 asks for it' }] });
  }
  if (headers.expect !== undefined && !/^\s*100-continue\s*$/i.test(headers.expect)) {
    const errors = [{ header: 'Expect', code: 'value_invalid', detail: 'is not known here', allowed: '100-continue' }];
    return refuse('expectation_unsupported', { errors });
  }
  return null;
}
