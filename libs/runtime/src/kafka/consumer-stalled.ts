import type { ConsumerHealth } from './port';

/** A client that tries again says so at least every 100 s (40 retries, 2 s to connect); one that has stopped says nothing. */
const SILENT_MS = 180_000;

/** For a part's `notAlive`: the client can end without a word, and only a new process helps. An outage of the brokers is not that. */
export function consumerStalled(health: ConsumerHealth, nowMs: number = performance.now()): string | undefined {
  const last = Math.max(health.lastActivityMs ?? 0, health.lastFetchMs);
  if (last === 0 || nowMs - last < SILENT_MS) return undefined;
  return `the consumer has done nothing for ${Math.round((nowMs - last) / 1000)} s`;
}
