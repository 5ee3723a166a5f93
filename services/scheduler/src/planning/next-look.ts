/** What one look at the due index found. */
export interface Look {
  slices: number;
  woken: number;
  setAside: number;
  /** Numbers whose row was locked for the moment. */
  skipped: number;
  /** Numbers with credit and due work did not fit into the round. */
  more: boolean;
  /** Time until the next entry is due, by PostgreSQL's clock; null: nothing within the look-ahead. */
  nextDueInMs: number | null;
  /** Runs stay active after the round: they wait for credit, for a release of their number under way, or for the rest of their quota. */
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
  if (look.more || look.setAside > 0 || look.skipped > 0) return 0;
  const waits = [intervals.pollMs];
  if (look.unserved) waits.push(intervals.unservedMs);
  // Rounded up: a timer that fires early only costs a look, but would then spin until the instant.
  if (look.nextDueInMs !== null) waits.push(Math.max(0, Math.ceil(look.nextDueInMs)));
  return Math.min(...waits);
}
