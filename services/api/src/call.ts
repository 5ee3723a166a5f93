import type { Scope } from './keys/api-key';
import type { Refusal } from './problem/problem-table';
import type { Mode } from './schedule/definition';

/** Whose request it is. Ids are UUIDs in their text form. */
export interface Caller {
  tenantId: string;
  mode: Mode;
  scopes: ReadonlySet<Scope>;
  /** What the record keeps: `key:key_...` or `operator`. */
  actor: string;
}

/** A named request: its answer is kept with what it changed, so that a repeat gets the same. */
export interface Idempotency {
  /** Method and path. */
  endpoint: string;
  key: string;
  /** SHA-256 of query and body. */
  requestHash: Buffer;
}

/** A request that was let in: known caller, everything parsed. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  caller: Caller;
  params: P;
  query: Q;
  body: B;
  correlationId: string;
  traceparent: string | null;
  idempotency: Idempotency | null;
  /** Version named by If-Match; `any` for `*`. */
  ifMatch: number | 'any' | null;
  nowMs: number;
}

export interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
  /** Sent instead of `body`, part by part; never kept for a repeat. */
  stream?: { type: string; parts: AsyncIterable<string> };
}

/** The first request with this Idempotency-Key has been answered meanwhile (`done`), or is at work (`running`). */
export interface Repeated {
  repeated: 'done' | 'running';
}

export type Outcome = Answer | Refusal | Repeated;

/** What the database keeps of an answer beside the change itself; null where the request was not named. */
export function answerRecord(call: Call, answer: Answer): Record<string, unknown> | null {
  if (!call.idempotency) return null;
  const { endpoint, key } = call.idempotency;
  return { endpoint, key, status: answer.status, headers: answer.headers ?? {}, body: JSON.stringify(answer.body) };
}
