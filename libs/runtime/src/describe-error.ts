import { isError } from './is-error';
import { PunctualError } from './errors';
import { scrub } from './scrub';

export interface ErrorDescription {
  type: string;
  code?: string;
  retriable?: boolean;
  message: string;
  /** Of a PostgreSQL error: names of things, never their values. */
  constraint?: string;
  table?: string;
  routine?: string;
  stack?: string;
  cause?: ErrorDescription;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.]{0,62}$/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** What a log may show of an error: never `detail`, `where`, parameters, response bodies or anything else that quotes input. */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!isError(error)) return { type: error === null ? 'null' : typeof error, message: '[not an Error]' };
  const fields = error as unknown as Record<string, unknown>;
  const code =
    typeof fields.code === 'string' && /^[A-Za-z0-9_]{2,64}$/.test(fields.code) && !/\d{6,}/.test(fields.code)
      ? fields.code
      : undefined;
  const named = (field: string) =>
    typeof fields[field] === 'string' && NAME.test(fields[field]) ? scrub(fields[field]) : undefined;
  const description: ErrorDescription = {
    type: NAME.test(error.name) ? scrub(error.name) : 'Error',
    message: safeMessage(error, code),
  };
  if (code) description.code = code;
  if (error instanceof PunctualError) description.retriable = error.retriable;
  if (code && SQLSTATE.test(code)) {
    for (const field of ['constraint', 'table', 'routine'] as const) {
      const name = named(field);
      if (name) description[field] = name;
    }
  }
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at .*(?:\)|:\d+:\d+)$/.test(line));
  if (frames.length > 0) description.stack = frames.slice(0, 12).map(scrub).join('\n');
  if (error.cause !== undefined && depth < 4) description.cause = describeError(error.cause, depth + 1);
  return description;
}

function safeMessage(error: Error, code: string | undefined): string {
  // Both quote what they were fed: SyntaxError the text that JSON.parse got, SQLSTATE class 22 the value it could not convert.
  if (error instanceof SyntaxError || error.name === 'SyntaxError' || (code && SQLSTATE.test(code) && code.startsWith('22'))) {
    return '[withheld: it quotes its input]';
  }
  return scrub(error.message);
}
