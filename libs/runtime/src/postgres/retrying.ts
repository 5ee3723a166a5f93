import { ROLLED_BACK_BY_OTHERS, isConnectionLoss, sqlState } from './failures';
import { pause } from '../pause';

export interface RetryOptions {
  /** SQLSTATEs to try again on; deadlock and full lock table (40P01, 53200, 40001) if absent. Add 55P03 where a lock time-out may be waited out. */
  states?: readonly string[];
  /** Only for work that may run twice: after a lost connection nobody knows whether it took effect. */
  idempotent?: boolean;
  attempts?: number;
  /** Stop trying (the last error is thrown) when it fires. */
  signal?: AbortSignal;
}

/** Runs `work` again on the failures that are worth it, with growing, jittered pauses (5 ms to 1 s). */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions = {}): Promise<T> {
  const { states = ROLLED_BACK_BY_OTHERS, idempotent = false, attempts = 6, signal } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const state = sqlState(error);
      const lost = isConnectionLoss(error);
      const worthIt = lost ? idempotent : state !== undefined && states.includes(state);
      if (!worthIt || signal?.aborted || attempt >= attempts) throw error;
      const base = lost ? 100 : 5;
      await pause(Math.min(1_000, base * 2 ** (attempt - 1)) * (0.5 + Math.random()), signal);
    }
  }
}
