import type { NotAccepted } from '../answer';
import { unknown } from './classify-answer';

/** How far a request had come when it ended without an answer. */
export interface CallFailure {
  /** Set in the tick in which the request was written to a socket; false only if not one byte can have left. */
  written: boolean;
  error: unknown;
}

/** undici builds no such request. Of all that goes into one only the access token is not ours, and no retry makes it better. */
const REFUSED_BY_THE_CLIENT = 'UND_ERR_INVALID_ARG';

/**
 * The line between "not sent" and "uncertain" is the first byte on the socket, not the kind of error: a reset before it is
 * harmless, the same reset after it may have been a sent message. So the code of the error never decides whether it was sent.
 */
export function classifyFailure({ written, error }: CallFailure): NotAccepted {
  const code = failureCode(error);
  if (written) return unknown(`no answer: ${code}`, code);
  const unsent = { providerCode: code, waitMs: 0, growing: null, retriesAtMost: null };
  if (code === REFUSED_BY_THE_CLIENT) {
    const text = 'the access token has characters that no header can carry';
    return { ...unsent, class: 'stop_tenant', code: 'credentials_invalid', text, alert: true };
  }
  return { ...unsent, class: 'not_sent', code: 'not_sent', text: `the provider could not be called: ${code}`, alert: false };
}

function failureCode(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return 'no_code';
  const { code, cause, errors, name } = error as { code?: unknown; cause?: unknown; errors?: unknown; name?: unknown };
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return code;
  const inner = Array.isArray(errors) ? errors[0] : cause;
  if (inner !== undefined) return failureCode(inner, depth + 1);
  return typeof name === 'string' && /^[A-Za-z]{1,40}$/.test(name) ? name : 'no_code';
}
