import { isRetriable } from '../retriable';
import type { InRecord } from './port';

export interface Isolation {
  signal: AbortSignal;
  /** Handles records in order; must be idempotent, since it sees them again after a failure. */
  handle(records: InRecord[]): Promise<void>;
  /** False if it was told to stop before the record was safe. */
  park(record: InRecord, failure: unknown): Promise<boolean>;
  /** Waits before the n-th repetition. `outage` for failures that concern everything (a lost database). */
  backOff(repetition: number, outage: boolean): Promise<void>;
  onRetry(failure: unknown, repetition: number, outage: boolean): void;
  /** How often a whole batch is tried again before the culprit is looked for; 2 if absent. */
  repetitions?: number;
}

/**
 * Handles a batch to its end. An outage (an error marked retriable) is waited out however long it takes: it is no fault of any
 * record. Any other error is tried again a few times; then the batch is halved until the one record that fails alone is found
 * and parked, and all others are handled. Answers false if the signal fired first: nothing may be committed then.
 */
export async function handleIsolating(records: InRecord[], isolation: Isolation): Promise<boolean> {
  return handlePart(records, isolation.repetitions ?? 2, isolation);
}

async function handlePart(records: InRecord[], repetitions: number, isolation: Isolation): Promise<boolean> {
  const failure = await attempt(records, repetitions, isolation);
  if (failure === 'done') return true;
  if (failure === 'stopped') return false;
  if (records.length === 1) return isolation.park(records[0]!, failure.error);
  const middle = Math.ceil(records.length / 2);
  for (const half of [records.slice(0, middle), records.slice(middle)]) {
    // A half gets one chance, a single record two: it was part of every failure so far.
    if (!(await handlePart(half, half.length === 1 ? 1 : 0, isolation))) return false;
  }
  return true;
}

async function attempt(
  records: InRecord[],
  repetitions: number,
  isolation: Isolation,
): Promise<'done' | 'stopped' | { error: unknown }> {
  for (let outages = 0, faults = 0; ;) {
    if (isolation.signal.aborted) return 'stopped';
    try {
      await isolation.handle(records);
      return 'done';
    } catch (error) {
      // A handler that was told to stop fails in its own ways; that says nothing about its records.
      if (isolation.signal.aborted) return 'stopped';
      const outage = isRetriable(error);
      const repetition = outage ? ++outages : ++faults;
      if (!outage && faults > repetitions) return { error };
      isolation.onRetry(error, repetition, outage);
      await isolation.backOff(repetition, outage);
    }
  }
}
