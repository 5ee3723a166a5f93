import { isError } from './is-error';
import { PunctualError } from './errors';

/** True if the error, or what caused it, says that trying again later can help: a lost database, not a broken record. */
export function isRetriable(error: unknown): boolean {
  for (let at = error, depth = 0; isError(at) && depth < 5; at = at.cause, depth++) {
    if (at instanceof PunctualError) return at.retriable;
  }
  return false;
}
