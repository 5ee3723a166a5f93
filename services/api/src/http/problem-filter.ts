import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '#runtime/log';
import { PunctualError } from '#runtime/errors';
import { refuse, type Refusal } from '../problem/problem-table';
import type { Door } from './door';
import { BodyRefused } from './read-json-body';

/** Faults, and what the HTTP server itself refuses, in the same shape as every other problem. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(
    private readonly door: Door,
    private readonly log: Log,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const request = http.getRequest<FastifyRequest>();
    const refusal = refusalFor(error);
    if (refusal.refused === 'internal')
      this.log.error('a request failed', { error, requestId: request.id, method: request.method });
    if (refusal.refused === 'unavailable') this.log.warn('a request was turned away', { error, requestId: request.id });
    if (!reply.sent) this.door.refuse(reply, request, refusal);
  }
}

function refusalFor(error: unknown): Refusal {
  if (error instanceof BodyRefused) return refuse(error.code, { detail: error.detail });
  if (error instanceof PunctualError && error.retriable) return refuse('unavailable', { headers: { 'retry-after': '1' } });
  const status = error instanceof HttpException ? error.getStatus() : (error as { statusCode?: unknown } | null)?.statusCode;
  switch (status) {
    case 400:
      return refuse('body_unparseable');
    case 404:
      return refuse('not_found');
    case 413:
      return refuse('body_too_large');
    case 415:
      return refuse('media_type_unsupported');
    default:
      return refuse('internal');
  }
}
