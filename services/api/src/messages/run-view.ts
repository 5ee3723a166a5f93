import { formatId, uuidBytes } from '#contracts/ids';
import { MESSAGE_STATUSES, type MessageStatus } from '#contracts/words';
import type { ExistingSchedule } from '../schedule/schedule-state';
import { isoOrNull, type LiveFacts } from '../schedule/schedule-view';

export interface RunFacts {
  /** Statuses that do not change by themselves, from the read model. */
  counted: Array<{ status: MessageStatus; reason: string | null; count: number }>;
  sending: number;
  waiting: number;
  outcome: string | null;
  completedAtMs: number | null;
  firstCalledAtMs: number | null;
  lastCalledAtMs: number | null;
  nowMs: number;
}

export type Counts = Record<MessageStatus, number>;

/**
 * By status, always adding up to the total: `scheduled` is what nobody else counts. Live counts and counters are read at
 * slightly different moments, so a message can be in both for a moment; then the live one gives way.
 */
export function countRun(total: number, facts: Pick<RunFacts, 'counted' | 'sending' | 'waiting'>): Counts {
  const counts = Object.fromEntries(MESSAGE_STATUSES.map((status) => [status, 0])) as Counts;
  let left = total;
  const take = (status: MessageStatus, count: number) => {
    const taken = Math.max(0, Math.min(count, left));
    counts[status] += taken;
    left -= taken;
  };
  for (const { status, count } of facts.counted) if (!LIVE.has(status)) take(status, count);
  take('sending', facts.sending);
  take('waiting', facts.waiting);
  counts.scheduled = left;
  return counts;
}

const LIVE: ReadonlySet<MessageStatus> = new Set(['scheduled', 'waiting', 'sending']);
const ACCEPTED: readonly MessageStatus[] = ['submitted', 'sent', 'delivered', 'read'];

export function runView(state: ExistingSchedule, facts: RunFacts, live: LiveFacts): Record<string, unknown> {
  const { definition } = state;
  const total = definition.audience.accepted;
  const counts = countRun(total, facts);
  const sum = (statuses: readonly MessageStatus[]) => statuses.reduce((all, status) => all + counts[status], 0);
  const accepted = sum(ACCEPTED);
  const started = facts.firstCalledAtMs !== null || counts.scheduled < total;
  return {
    id: formatId('run', Buffer.from(state.runId, 'hex')),
    scheduleId: formatId('sch', uuidBytes(state.scheduleId)),
    slot: definition.slot.slot,
    status: runStatus(state, facts, started),
    outcome: facts.outcome,
    total,
    counts,
    byReason: byReason(facts),
    byZone: [],
    dueAt: isoOrNull(definition.slot.dueAtMs),
    startedAt: isoOrNull(facts.firstCalledAtMs),
    completedAt: isoOrNull(facts.completedAtMs),
    ratePerSecond: { allowed: definition.number.ratePerSecond, achieved: achieved(accepted + counts.failed, facts) },
    successRate: ratio(accepted, total),
    deliveryRate: ratio(counts.delivered + counts.read, accepted),
    waitingFor: live.waitingFor && {
      reason: live.waitingFor.reason,
      since: isoOrNull(live.waitingFor.sinceMs),
      until: isoOrNull(live.waitingFor.untilMs),
    },
  };
}

function runStatus(
  state: ExistingSchedule,
  facts: RunFacts,
  started: boolean,
): 'scheduled' | 'running' | 'completed' | 'cancelled' {
  if (state.status === 'cancelled') return 'cancelled';
  if (facts.completedAtMs !== null) return 'completed';
  return started || facts.nowMs >= state.definition.slot.dueAtMs ? 'running' : 'scheduled';
}

/** Why, for the statuses that have a reason. */
function byReason(facts: RunFacts): Record<string, Record<string, number>> {
  const reasons: Record<string, Record<string, number>> = {};
  for (const { status, reason, count } of facts.counted) {
    if (reason === null || count === 0) continue;
    const named = (reasons[status] ??= {});
    named[reason] = (named[reason] ?? 0) + count;
  }
  return reasons;
}

/** (n - 1) / (last - first): n calls have n - 1 gaps between them. */
function achieved(called: number, facts: RunFacts): number | null {
  if (called < 2 || facts.firstCalledAtMs === null || facts.lastCalledAtMs === null) return null;
  const spanMs = facts.lastCalledAtMs - facts.firstCalledAtMs;
  return spanMs > 0 ? round(((called - 1) * 1000) / spanMs, 1) : null;
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : round(part / whole, 3);
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
