import { createHash, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Clock } from '#runtime/clock';
import type { Database } from '#runtime/postgres/database';
import { pause } from '#runtime/pause';
import { currentTraceparent } from '#runtime/trace-context';
import type { Answer, Call, Caller, Idempotency, Outcome } from '../call';
import { isApiKey, type Scope } from '../keys/api-key';
import { findCaller } from '../postgres/keys';
import { findAnswer } from '../postgres/answers';
import { faultsFromZod, type Place } from '../problem/faults-from-zod';
import { textFaults } from '../problem/text-faults';
import { isRefusal, problemOf, refuse, type Fault, type Refusal } from '../problem/problem-table';
import type { EndpointSpec } from './endpoint';
import { rawBodyOf } from './read-json-body';

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;
export type CallOf<E> = E extends EndpointSpec<infer P, infer Q, infer B> ? Call<Parsed<P>, Parsed<Q>, Parsed<B>> : never;

export const OPERATOR_TENANT = '00000000-0000-0000-0000-000000000000';
const KEY_PARAMETERS = new Set(['key', 'apikey', 'api_key', 'api-key', 'token', 'access_token', 'authorization', 'bearer']);
const BEARER = /^Bearer +(\S+)$/i;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;
const IN_PROGRESS_WAIT_MS = 10_000;
const IN_PROGRESS_POLL_MS = 100;

/** Every request comes in here: who is it, may they, is it readable, was it answered before; then the step runs. */
export class Door {
  private readonly operatorHash: Buffer;
  private readonly callers = new WeakMap<FastifyRequest, Caller>();

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    operatorKey: string,
    readonly origin: () => string,
  ) {
    this.operatorHash = sha256(operatorKey);
  }

  /**
   * Who is it, and may they? Asked before anything of a body is read; null if they may. `enter` asks again only where this was not
   * asked.
   */
  async knock(spec: EndpointSpec, request: FastifyRequest): Promise<Refusal | null> {
    const caller = await this.callerOf(spec, request);
    if (isRefusal(caller)) return caller;
    this.callers.set(request, caller);
    return null;
  }

  async enter<E extends EndpointSpec<never, never, never> | EndpointSpec>(
    spec: E,
    request: FastifyRequest,
    reply: FastifyReply,
    step: (call: CallOf<E>) => Promise<Outcome>,
  ): Promise<void> {
    const known = spec as EndpointSpec;
    const nowMs = this.clock.nowMs();
    const caller = this.callers.get(request) ?? (await this.callerOf(known, request));
    if (isRefusal(caller)) return this.refuse(reply, request, caller);
    const read = readCall(known, request, caller, nowMs);
    if (isRefusal(read)) return this.refuse(reply, request, read);

    if (read.idempotency && !known.streamed && (await this.replay(read.idempotency, caller, request, reply))) return;
    const giveUpMs = this.clock.monotonicMs() + IN_PROGRESS_WAIT_MS;
    for (;;) {
      const outcome = await step(read as CallOf<E>);
      if (!('repeated' in outcome)) return isRefusal(outcome) ? this.refuse(reply, request, outcome) : send(reply, outcome);
      // The other request may still fail; then this one is the first. Otherwise its answer is found.
      if (read.idempotency && (await this.replay(read.idempotency, caller, request, reply))) return;
      if (this.clock.monotonicMs() > giveUpMs)
        return this.refuse(reply, request, refuse('request_in_progress', { headers: { 'retry-after': '1' } }));
      await pause(IN_PROGRESS_POLL_MS);
    }
  }

  refuse(reply: FastifyReply, request: FastifyRequest, refusal: Refusal): void {
    const problem = problemOf(refusal, this.origin(), pathOf(request));
    reply.status(problem.status).headers(problem.headers).type('application/problem+json').send(JSON.stringify(problem.body));
  }

  private async callerOf(spec: EndpointSpec, request: FastifyRequest): Promise<Caller | Refusal> {
    const inQuery = Object.keys(request.query as object).find((name) => KEY_PARAMETERS.has(name.toLowerCase()));
    if (inQuery !== undefined) {
      return refuse('key_in_query', {
        errors: [{ parameter: inQuery, code: 'key_in_query', detail: 'keys do not belong into URLs' }],
      });
    }
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    const challenge = { headers: { 'www-authenticate': 'Bearer' } };
    if (token === undefined) return refuse('unauthorized', challenge);
    if (spec.access === 'operator') {
      if (!timingSafeEqual(sha256(token), this.operatorHash)) return refuse('unauthorized', challenge);
      return { tenantId: OPERATOR_TENANT, mode: 'live', scopes: new Set(), actor: 'operator' };
    }
    const caller = isApiKey(token) ? await findCaller(this.database, token) : null;
    if (!caller) return refuse('unauthorized', challenge);
    if (spec.access !== 'any_key' && !caller.scopes.has(spec.access.scope)) return missingScope(spec.access.scope);
    return caller;
  }

  private async replay(idempotency: Idempotency, caller: Caller, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const kept = await findAnswer(this.database, caller.tenantId, idempotency);
    if (!kept) return false;
    if (!kept.requestHash.equals(idempotency.requestHash)) {
      this.refuse(
        reply,
        request,
        refuse('idempotency_key_reused', {
          errors: [{ header: 'Idempotency-Key', code: 'idempotency_key_reused', detail: 'it was used with another body' }],
        }),
      );
      return true;
    }
    reply
      .status(kept.status)
      .headers({ ...kept.headers, 'idempotent-replayed': 'true' })
      .type('application/json; charset=utf-8')
      .send(kept.body);
    return true;
  }
}

export function missingScope(scope: Scope): Refusal {
  return refuse('scope_missing', { detail: `The key needs the scope ${scope}.`, members: { scope } });
}

function send(reply: FastifyReply, answer: Answer): void {
  if (answer.stream) {
    const { type, parts } = answer.stream;
    reply
      .status(answer.status)
      .headers(answer.headers ?? {})
      .type(type)
      .send(Readable.from(parts));
    return;
  }
  reply
    .status(answer.status)
    .headers(answer.headers ?? {})
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(answer.body));
}

function readCall(spec: EndpointSpec, request: FastifyRequest, caller: Caller, nowMs: number): Call | Refusal {
  const faults: Fault[] = [];
  let unknown = false;
  const parse = (schema: z.ZodType | undefined, input: unknown, place: Place): unknown => {
    if (!schema) {
      for (const name of place === 'query' ? Object.keys(input as object) : []) {
        unknown = true;
        faults.push({ parameter: name, code: 'unknown_member', detail: 'there is no such parameter here' });
      }
      return undefined;
    }
    const unreadable = textFaults(input, place);
    if (unreadable.length > 0) {
      faults.push(...unreadable);
      return undefined;
    }
    const result = schema.safeParse(input, { reportInput: false });
    if (result.success) return result.data;
    const read = faultsFromZod(result.error, input, place);
    unknown ||= read.unknown;
    faults.push(...read.faults);
    return undefined;
  };

  const params = parse(spec.params, request.params, 'path');
  const query = parse(spec.query, request.query, 'query');
  let body: unknown;
  if (spec.body) {
    const given = request.body ?? (spec.bodyOptional ? {} : undefined);
    if (given === undefined) {
      const type = request.headers['content-type'];
      const refused = type !== undefined && !/^application\/json\b/i.test(type);
      return refused ? refuse('media_type_unsupported') : refuse('body_unparseable', { detail: 'The request has no JSON body.' });
    }
    body = parse(spec.body, given, 'body');
  }

  const idempotencyKey = headerOf(request, 'idempotency-key')?.replace(/^"(.*)"$/, '$1');
  if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    return badHeader('Idempotency-Key', '1 to 255 visible ASCII characters');
  }
  const ifMatch = readIfMatch(headerOf(request, 'if-match'));
  if (ifMatch === undefined) return badHeader('If-Match', 'the ETag of one version, such as "3"');
  if (faults.length > 0) return refuse(unknown ? 'unknown_member' : 'request_invalid', { errors: faults });
  if (spec.ifMatch === 'required' && ifMatch === null) return refuse('precondition_required');

  const named = idempotencyKey !== undefined && (spec.method === 'POST' || spec.method === 'PATCH');
  return {
    caller,
    params,
    query,
    body,
    correlationId: request.id,
    traceparent: currentTraceparent() ?? null,
    ifMatch,
    nowMs,
    idempotency: named
      ? { endpoint: `${spec.method} ${pathOf(request)}`, key: idempotencyKey, requestHash: requestHash(request) }
      : null,
  };
}

function badHeader(header: string, allowed: string): Refusal {
  return refuse('header_invalid', { errors: [{ header, code: 'format_invalid', detail: 'can not be read', allowed }] });
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** Undefined: unreadable. Weak tags are taken as well: some proxies weaken what they pass on. */
function readIfMatch(header: string | undefined): number | 'any' | null | undefined {
  if (header === undefined) return null;
  if (header.trim() === '*') return 'any';
  const match = /^\s*(?:W\/)?"?(\d{1,9})"?\s*$/.exec(header);
  return match ? Number(match[1]) : undefined;
}

function requestHash(request: FastifyRequest): Buffer {
  const hash = createHash('sha256')
    .update(request.url.slice(pathOf(request).length))
    .update('\0');
  const raw = rawBodyOf(request);
  return (raw ? hash.update(raw) : hash).digest();
}

function pathOf(request: FastifyRequest): string {
  const end = request.url.indexOf('?');
  return end < 0 ? request.url : request.url.slice(0, end);
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
