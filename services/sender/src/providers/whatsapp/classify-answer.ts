import type { NotAccepted, ProviderAnswer } from '../answer';
import { errorRow } from './error-table';

export interface HttpAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

interface GraphError {
  message?: unknown;
  code?: unknown;
  error_subcode?: unknown;
  error_data?: { details?: unknown };
}

/**
 * What an answer of the Cloud API's send means. `now` only turns a date in Retry-After into a wait.
 * Rules: provider-semantics 1.4 (success), 2 (throttle headers), 3.1 and 3.2 (codes).
 */
export function classifyAnswer(answer: HttpAnswer, now: number): ProviderAnswer {
  const body = readJson(answer.body);
  const error = errorOf(body);
  if (error) return rejected(error, answer, now);
  if (answer.status >= 200 && answer.status < 300) return accepted(body) ?? unknown(`HTTP ${answer.status} without a message id`);
  return withoutGraphError(answer, now);
}

function accepted(body: unknown): ProviderAnswer | null {
  const message = record(list(record(body)?.messages)?.[0]);
  const id = message?.id;
  if (typeof id !== 'string' || id === '') return null;
  const status = message?.message_status;
  // `paused` stands in Meta's specification beside `held_for_quality_assessment`; both mean: taken, and not sent on yet.
  const held = status === 'held_for_quality_assessment' || status === 'paused';
  return { class: 'accepted', providerMessageId: id, providerStatus: held ? 'held' : 'accepted' };
}

function rejected(error: GraphError, answer: HttpAnswer, now: number): NotAccepted {
  const code = Number(error.code);
  const subcode = typeof error.error_subcode === 'number' ? error.error_subcode : null;
  if (!Number.isInteger(code)) return unknown('an error without a code');
  const { row, listed } = errorRow(code, subcode, answer.status);
  const details = typeof error.error_data?.details === 'string' ? error.error_data.details : null;
  const message = typeof error.message === 'string' ? error.message : null;
  const throttled = row.class === 'slow_app' || row.class === 'slow_waba' || row.class === 'slow_number';
  return {
    class: row.class,
    code: row.code,
    providerCode: subcode === null ? String(code) : `${code}/${subcode}`,
    text: details ?? message,
    waitMs: Math.max(row.waitMs ?? 0, retryAfterMs(answer.headers, now), throttled ? regainMs(answer.headers) : 0),
    growing: row.growing ?? null,
    retriesAtMost: row.retriesAtMost ?? null,
    alert: !listed || row.class === 'fail_request',
  };
}

function withoutGraphError(answer: HttpAnswer, now: number): NotAccepted {
  const { status } = answer;
  const plain = {
    providerCode: `http_${status}`,
    text: null,
    waitMs: retryAfterMs(answer.headers, now),
    growing: null,
    retriesAtMost: null,
  };
  if (status === 429) {
    return { ...plain, class: 'slow_number', code: 'provider_throttled', waitMs: Math.max(1_000, plain.waitMs), alert: false };
  }
  // Nothing behind these speaks the Graph API: our address, size or method is wrong, and no message can have got through.
  if (status === 404 || status === 405 || status === 413 || status === 414) {
    return { ...plain, class: 'fail_request', code: 'request_rejected', alert: true };
  }
  if (status === 401 || status === 403) return { ...plain, class: 'stop_tenant', code: 'credentials_invalid', alert: true };
  return unknown(`HTTP ${status} without a reason`, `http_${status}`);
}

export function unknown(text: string, providerCode: string | null = null): NotAccepted {
  return {
    class: 'unknown',
    code: 'outcome_unknown',
    providerCode,
    text,
    waitMs: 0,
    growing: null,
    retriesAtMost: null,
    alert: false,
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}

function list(value: unknown): unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

function errorOf(body: unknown): GraphError | undefined {
  return record(record(body)?.error) as GraphError | undefined;
}

function header(headers: HttpAnswer['headers'], name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Seconds or an HTTP date; no more than a day, whatever is said. */
function retryAfterMs(headers: HttpAnswer['headers'], now: number): number {
  const value = header(headers, 'retry-after');
  if (value === undefined) return 0;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), 86_400_000) : 0;
}

/** `x-business-use-case-usage` tells minutes until calls are allowed again, per account and use case. */
function regainMs(headers: HttpAnswer['headers']): number {
  const usage = record(readJson(header(headers, 'x-business-use-case-usage') ?? ''));
  if (!usage) return 0;
  const minutes = Object.values(usage)
    .flatMap((uses) => list(uses) ?? [])
    .map((use) => Number(record(use)?.estimated_time_to_regain_access ?? 0))
    .filter((value) => Number.isFinite(value));
  return Math.min(Math.max(0, ...minutes) * 60_000, 86_400_000);
}
