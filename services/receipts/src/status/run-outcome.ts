import type { MessageStatus } from '#contracts/words';
import { ENDED_STATUSES } from './message-status';

/** How many messages of a run are in one status for one reason; ranges of refused recipients are counted in. */
export interface RunCount {
  status: MessageStatus;
  reason: string | null;
  count: number;
}

export type RunOutcome = 'succeeded' | 'partly_failed' | 'failed';

const ACCEPTED: ReadonlySet<MessageStatus> = new Set(['submitted', 'sent', 'delivered', 'read']);

/** The customer asked for these not to be sent: they are no failure of the run. */
function causedByCustomer({ status, reason }: RunCount): boolean {
  return status === 'cancelled' || (status === 'refused' && (reason === 'suppressed' || reason === 'cancelled'));
}

export function outcomeOf(counts: readonly RunCount[]): RunOutcome {
  const sum = (wanted: (count: RunCount) => boolean) => counts.reduce((total, one) => total + (wanted(one) ? one.count : 0), 0);
  const accepted = sum(({ status }) => ACCEPTED.has(status));
  const lost = sum((one) => ENDED_STATUSES.has(one.status) && !ACCEPTED.has(one.status) && !causedByCustomer(one));
  if (lost === 0) return 'succeeded';
  return accepted === 0 ? 'failed' : 'partly_failed';
}

/** Messages that nothing can send any more; the run is completed when they are all of it. */
export function endedOf(counts: readonly RunCount[]): number {
  return counts.reduce((total, { status, count }) => total + (ENDED_STATUSES.has(status) ? count : 0), 0);
}

/** By status, as events tell them: what is in no other count is still `scheduled` (or under way), so that the sum is the total. */
export function countsOfEvent(counts: readonly RunCount[], total: number): Record<string, number> {
  const byStatus: Record<string, number> = {};
  let known = 0;
  for (const { status, count } of counts) {
    if (count === 0) continue;
    byStatus[status] = (byStatus[status] ?? 0) + count;
    known += count;
  }
  if (total > known) byStatus.scheduled = total - known;
  return byStatus;
}

export type RunStatus = 'scheduled' | 'running' | 'completed' | 'cancelled';

export function runStatusOf(run: { completed: boolean; cancelled: boolean; started: boolean }): RunStatus {
  if (run.cancelled) return 'cancelled';
  if (run.completed) return 'completed';
  return run.started ? 'running' : 'scheduled';
}
