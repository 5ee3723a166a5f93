import { types } from 'node:util';

/** Also for errors of another realm (a worker's context, a test runner's sandbox), whose prototype is another Error's. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
