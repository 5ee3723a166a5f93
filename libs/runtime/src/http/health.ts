import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Lifecycle, Part } from '../lifecycle';
import { serveMetrics } from '../loaded-telemetry';

/** What the routes ask. */
export type Condition = Pick<Lifecycle, 'notAlive' | 'notReady'>;

export interface HealthAnswer {
  status: number;
  body: { status: 'ok' | 'not_ready' | 'not_alive'; reasons?: string[] };
}

/** Restart me? Only for what a restart can cure; a database that is away is not. */
export function liveness(condition: Condition): HealthAnswer {
  const reasons = condition.notAlive();
  return reasons.length === 0 ? { status: 200, body: { status: 'ok' } } : { status: 503, body: { status: 'not_alive', reasons } };
}

/** Send me work? */
export function readiness(condition: Condition): HealthAnswer {
  const reasons = condition.notReady();
  return reasons.length === 0 ? { status: 200, body: { status: 'ok' } } : { status: 503, body: { status: 'not_ready', reasons } };
}

/** Answers /health/live, /health/ready and /metrics; false for any other path. */
export function answerHealth(condition: Condition, request: IncomingMessage, response: ServerResponse): boolean {
  const path = (request.url ?? '').split('?')[0];
  if (path === '/metrics') serveMetrics(request, response);
  else if (path === '/health/live') answer(response, liveness(condition));
  else if (path === '/health/ready') answer(response, readiness(condition));
  else return false;
  return true;
}

function answer(response: ServerResponse, { status, body }: HealthAnswer): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body));
}

/** The part of Fastify that is needed here; in Nest `app.getHttpAdapter().getInstance()`. */
export interface RawRoutes {
  get(
    path: string,
    handler: (request: { raw: IncomingMessage }, reply: { raw: ServerResponse; hijack(): unknown }) => void,
  ): unknown;
}

/** Adds the three routes to a Fastify instance, beside Nest's pipes, guards and filters. */
export function addHealthRoutes(fastify: RawRoutes, condition: Condition): void {
  for (const path of ['/health/live', '/health/ready', '/metrics']) {
    fastify.get(path, (request, reply) => {
      reply.hijack();
      answerHealth(condition, request.raw, reply.raw);
    });
  }
}

export interface HealthServer extends Part {
  readonly port: number;
}

/** A server for the three routes alone, as the first part of a process: readiness can be asked while the others start. */
export function healthServer(condition: Condition, { host, port }: { host: string; port: number }): HealthServer {
  const server = createServer((request, response) => {
    if (!answerHealth(condition, request, response)) response.writeHead(404).end();
  });
  return {
    name: 'health-server',
    get port() {
      return (server.address() as { port: number } | null)?.port ?? port;
    },
    start: () => new Promise((resolve, reject) => server.once('error', reject).listen(port, host, resolve)),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
