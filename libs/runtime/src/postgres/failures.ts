import { isError } from '../is-error';
import { PunctualError } from '../errors';

/** PostgreSQL can't be reached or went away in the middle. Whether the statement took effect is unknown. */
export class DatabaseUnavailableError extends PunctualError {
  constructor(cause: unknown) {
    super(
      'database_unavailable',
      'PostgreSQL does not answer; the work is tried again when it does. Check the server and DATABASE_URL.',
      {
        retriable: true,
        cause,
      },
    );
  }
}

/**
 * The server rolled the statement back for a reason that lies outside it: deadlocks, a lock or statement time-out, no memory,
 * no disk. `sqlState(error)` tells which.
 */
export class DatabaseBusyError extends PunctualError {
  constructor(cause: unknown) {
    super('database_busy', `PostgreSQL rolled the statement back (${sqlState(cause)}); the work is tried again later.`, {
      retriable: true,
      cause,
    });
  }
}

/** The SQLSTATE of a PostgreSQL error, also when it is wrapped. */
export function sqlState(error: unknown): string | undefined {
  for (let at = error, depth = 0; isError(at) && depth < 5; at = at.cause, depth++) {
    const { code, severity } = at as Error & { code?: unknown; severity?: unknown };
    if (typeof code === 'string' && severity !== undefined) return code;
  }
  return undefined;
}

// 08: connection exceptions. 57P01-57P03: shutdown, crash, starting up. 53300: too many connections.
// 25006: we are connected to what has become a standby.
const LOST_STATES = /^(?:08...|57P0[123]|53300|25006)$/;
const LOST_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EADDRNOTAVAIL',
]);
const LOST_TEXT =
  /Connection terminated|Query read timeout|timeout exceeded when trying to connect|not queryable|Client was closed|Client has encountered a connection error|server conn(?:ection)? crashed/i;

export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError) return true;
  if (!isError(error)) return false;
  const state = sqlState(error);
  if (state !== undefined) return LOST_STATES.test(state);
  if (error instanceof AggregateError) return error.errors.some(isConnectionLoss);
  const code = (error as NodeJS.ErrnoException).code;
  return (code !== undefined && LOST_CODES.has(code)) || LOST_TEXT.test(error.message);
}

/** 28000, 28P01: no such role, or not with this password; 3D000: no such database. All of them are made by the first migration. */
export function isNotPreparedYet(error: unknown): boolean {
  return ['28000', '28P01', '3D000'].includes(sqlState(error) ?? '');
}

/** Deadlock, and "out of shared memory" (the lock table): rolled back for certain, so trying again is always safe. */
export const ROLLED_BACK_BY_OTHERS: readonly string[] = ['40P01', '53200', '40001'];

/** Faults of the server or its load, not of the statement: 40P01, class 53 and 58, statement and lock time-out. */
export function isServerFault(error: unknown): boolean {
  const state = sqlState(error);
  return state !== undefined && (ROLLED_BACK_BY_OTHERS.includes(state) || /^(?:5[38]...|57014|55P03)$/.test(state));
}
