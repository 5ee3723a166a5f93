/** What one look at the due index found. */
export interface Look {
  slices: number;
  woken: number;
  setAside: number;
  /** Time until the next entry is due, by PostgreSQL's clock; null: nothing within the look-ahead. */
  nextDueInMs: number | null;
  /** Active runs are there that wait for credit or for another release of their number. */
  unserved: boolean;
}

export interface LookIntervals {
  /** The net under notifications and timers. */
  pollMs: number;
  /** While there is due work without credit: reports of credit come with a notification, which may be lost. */
  unservedMs: number;
}

/** How long to wait before looking again, unless a signal comes first. 0: at once, there may be more. */
export function nextLookInMs(look: Look, intervals: LookIntervals): number {
  if (look.slices > 0 || look.setAside > 0) return 0;
  const waits = [intervals.pollMs];
  if (look.unserved) waits.push(intervals.unservedMs);
  // Rounded up: a timer that fires early only costs a look, but would then spin until the instant.
  if (look.nextDueInMs !== null) waits.push(Math.max(0, Math.ceil(look.nextDueInMs)));
  return Math.min(...waits);
}
