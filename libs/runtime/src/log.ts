import pino from 'pino';
import { describeError } from './describe-error';
import { scrub } from './scrub';
import { currentTraceId } from './trace-context';

/**
 * What may be said about a line. A field that is not listed is dropped and only its name is kept: a phone number, a token or
 * a message body can't reach the log because somebody added a field, only because somebody added it here.
 *
 * - `id`: a UUID, a prefixed or a hexadecimal id. Anything else (a phone number, say) is shown as `[not an id]`.
 * - `word`: a closed word such as a reason, a state or a topic.
 * - `number`: a finite number or bigint. Never use it for anything a person could be called at.
 * - `time`: an ISO instant, or epoch milliseconds, shown as an ISO instant.
 * - `flag`: true or false.
 * - `text`: free text of our own; digits and tokens in it are masked.
 */
export type FieldKind = 'id' | 'word' | 'number' | 'time' | 'flag' | 'text';

export const baseFields = {
  traceId: 'id',
  spanId: 'id',
  requestId: 'id',
  code: 'word',
  reason: 'word',
  state: 'word',
  part: 'word',
  topic: 'word',
  group: 'word',
  method: 'word',
  route: 'word',
  version: 'word',
  signal: 'word',
  waitingFor: 'text',
  address: 'text',
  hint: 'text',
  file: 'text',
  partition: 'number',
  lane: 'number',
  offset: 'number',
  count: 'number',
  attempt: 'number',
  status: 'number',
  port: 'number',
  pid: 'number',
  durationMs: 'number',
  waitedMs: 'number',
  ageMs: 'number',
  retriable: 'flag',
  at: 'time',
} as const satisfies Record<string, FieldKind>;

export type LogValue = string | number | bigint | boolean | Date | null | undefined;
export type LogFields = { error?: unknown } & { [field: string]: LogValue | unknown };

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with fields on every line. */
  with(fields: LogFields): Log;
}

export interface LogOptions {
  service: string;
  level?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** The service's own fields beside `baseFields`. */
  fields?: Record<string, FieldKind>;
  /** Where lines go; stdout if absent. */
  write?: (line: string) => void;
}

const ID = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,64}|[a-z]{2,12}_[0-9A-Za-z_-]{4,64})$/;
const LONG_DIGITS = /\d{7,}/;
const WORD = /^[A-Za-z][A-Za-z0-9_.:/{}@-]{0,99}$/;
const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/;

function shown(kind: FieldKind, value: unknown): string | number | boolean | null {
  switch (kind) {
    case 'id': {
      const text = String(value);
      const digitsOnlyAfterPrefix = /^(?:[a-z]+_)?\d+$/.test(text);
      return ID.test(text) && !digitsOnlyAfterPrefix ? text : '[not an id]';
    }
    case 'word': {
      const text = String(value);
      return WORD.test(text) && !LONG_DIGITS.test(text) ? text : '[not a word]';
    }
    case 'number':
      if (typeof value === 'bigint') return Number(value);
      return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 1000) / 1000 : '[not a number]';
    case 'time': {
      if (typeof value === 'number' || value instanceof Date) {
        const date = new Date(value);
        return Number.isNaN(date.getTime()) ? '[not a time]' : date.toISOString();
      }
      return typeof value === 'string' && INSTANT.test(value) ? value : '[not a time]';
    }
    case 'flag':
      return typeof value === 'boolean' ? value : '[not a flag]';
    case 'text':
      return typeof value === 'object' || typeof value === 'function' ? '[not text]' : scrub(String(value));
    default:
      return kind satisfies never;
  }
}

export function openLog(options: LogOptions): Log {
  const kinds = new Map<string, FieldKind>(Object.entries({ ...baseFields, ...options.fields }));
  const logger = pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'message',
      formatters: { level: (level) => ({ level }) },
      mixin: () => {
        const traceId = currentTraceId();
        return traceId ? { traceId } : {};
      },
    },
    options.write ? { write: options.write } : pino.destination({ dest: 1, sync: true }),
  );

  const allowed = (fields: LogFields): Record<string, unknown> => {
    const line: Record<string, unknown> = {};
    let dropped: string[] | undefined;
    for (const [field, value] of Object.entries(fields)) {
      if (value === undefined) continue;
      if (field === 'error') line.error = describeError(value);
      else {
        const kind = kinds.get(field);
        if (!kind) (dropped ??= []).push(WORD.test(field) && !/\d/.test(field) ? field : '[unnamed]');
        else line[field] = value === null ? null : shown(kind, value);
      }
    }
    if (dropped) line.droppedFields = dropped;
    return line;
  };

  const over = (target: pino.Logger): Log => {
    const at = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: LogFields) => {
      if (target.isLevelEnabled(level)) target[level](fields ? allowed(fields) : {}, scrub(message));
    };
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      with: (fields) => over(target.child(allowed(fields))),
    };
  };
  return over(logger);
}

const nothing = () => undefined;

/** For callers that were given no log. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, with: () => silentLog };
