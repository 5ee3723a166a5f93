import type { ClaimState, MessageStatus } from '#contracts/words';
import type { ClaimFact, MessageFacts, ScheduleFacts, WaitingFact } from './message-facts';

export type ReachedProvider = 'no' | 'maybe' | 'yes';

export interface MergedMessage {
  status: MessageStatus;
  final: boolean;
  reachedProvider: ReachedProvider;
  reason: string | null;
  waitingFor: WaitingFact | null;
  attempts: number;
  nextAttemptAtMs: number | null;
  errorCode: string | null;
}

/**
 * The status of one message from all who know something of it. The read model is the join of all facts but lags by some
 * milliseconds; the gate's row is live but knows no receipts. A higher step is later, so the gate's row wins where its step is
 * higher; positive evidence always wins, since nothing that the sender does afterwards can undo a delivery.
 */
export function mergeMessage(facts: MessageFacts, schedule: ScheduleFacts): MergedMessage {
  const { claim, waiting, projected, range } = facts;
  const attempts = Math.max(claim?.attempt ?? 0, projected?.attempts ?? 0);
  if (projected && !isBehind(projected.status, projected.step, claim)) {
    // A hold that the sender has ended meanwhile is no longer one.
    const held = projected.status === 'waiting' && !claim && !waiting;
    if (!held) {
      const waitingFor = projected.status === 'waiting' ? (waiting ?? projected.waiting) : null;
      return answer(projected.status, {
        reason: projected.reason,
        waitingFor,
        attempts,
        nextAttemptAtMs: projected.status === 'waiting' && claim ? (claim.nextAttemptAtMs ?? null) : null,
        errorCode: projected.error?.code ?? null,
        reached: reachedBy(projected.status, projected.submittedAtMs !== null, claim?.wasUncertain ?? false),
        schedule,
      });
    }
  }
  if (claim) return fromClaim(claim, waiting, attempts, schedule);
  if (waiting) return answer('waiting', { reason: waiting.reason, waitingFor: waiting, attempts, schedule });
  if (range) return answer(range.status, { reason: range.reason, attempts, schedule, reached: 'no' });
  if (schedule.cancelled) return answer('cancelled', { reason: 'cancelled', attempts, schedule });
  return answer('scheduled', { attempts, schedule, waitingFor: waitOfUnreleased(schedule) });
}

const POSITIVE: ReadonlySet<MessageStatus> = new Set(['sent', 'delivered', 'read']);

function isBehind(status: MessageStatus, step: number | null, claim: ClaimFact | null): boolean {
  if (!claim || POSITIVE.has(status)) return false;
  // A receipt that says failed: it is about an attempt that the gate counts as accepted.
  if (status === 'failed' && claim.state === 'accepted') return false;
  return claim.step > (step ?? -1);
}

const STATUS_OF_CLAIM: Record<ClaimState, MessageStatus> = {
  sending: 'sending',
  accepted: 'submitted',
  failed: 'failed',
  retry_wait: 'waiting',
  uncertain: 'uncertain',
  unconfirmed: 'unconfirmed',
  refused: 'refused',
  cancelled: 'cancelled',
  expired: 'expired',
};

function fromClaim(claim: ClaimFact, waiting: WaitingFact | null, attempts: number, schedule: ScheduleFacts): MergedMessage {
  const status = STATUS_OF_CLAIM[claim.state];
  const waitingFor =
    status === 'waiting'
      ? (waiting ?? { reason: 'retry', sinceMs: claim.updatedAtMs, wakeAtMs: claim.nextAttemptAtMs, givesUpAtMs: null })
      : null;
  return answer(status, {
    reason: status === 'waiting' ? waitingFor!.reason : claim.reason,
    waitingFor,
    attempts,
    nextAttemptAtMs: claim.nextAttemptAtMs,
    errorCode: claim.errorCode,
    reached: reachedBy(status, claim.state === 'accepted', claim.wasUncertain),
    schedule,
  });
}

/** Due but not released: the schedule itself says why. */
function waitOfUnreleased(schedule: ScheduleFacts): WaitingFact | null {
  if (schedule.pausedSinceMs === null || schedule.nowMs < schedule.dueAtMs) return null;
  return { reason: 'paused', sinceMs: Math.max(schedule.pausedSinceMs, schedule.dueAtMs), wakeAtMs: null, givesUpAtMs: null };
}

function reachedBy(status: MessageStatus, accepted: boolean, wasUncertain: boolean): ReachedProvider {
  switch (status) {
    case 'scheduled':
    case 'waiting':
      return wasUncertain ? 'maybe' : 'no';
    case 'sending':
    case 'uncertain':
    case 'unconfirmed':
      return 'maybe';
    case 'submitted':
    case 'sent':
    case 'delivered':
    case 'read':
      return 'yes';
    case 'failed':
      return accepted ? 'yes' : 'no';
    case 'refused':
    case 'cancelled':
    case 'expired':
      return wasUncertain ? 'maybe' : 'no';
    default:
      return status satisfies never;
  }
}

function isFinal(status: MessageStatus, evidenceEnded: boolean): boolean {
  switch (status) {
    case 'delivered':
    case 'read':
    case 'unconfirmed':
    case 'failed':
    case 'refused':
    case 'cancelled':
    case 'expired':
      return true;
    case 'submitted':
    case 'sent':
      return evidenceEnded;
    case 'scheduled':
    case 'waiting':
    case 'sending':
    case 'uncertain':
      return false;
    default:
      return status satisfies never;
  }
}

function answer(
  status: MessageStatus,
  known: {
    schedule: ScheduleFacts;
    attempts: number;
    reason?: string | null;
    waitingFor?: WaitingFact | null;
    nextAttemptAtMs?: number | null;
    errorCode?: string | null;
    reached?: ReachedProvider;
  },
): MergedMessage {
  return {
    status,
    final: isFinal(status, known.schedule.evidenceEnded),
    reachedProvider: known.reached ?? reachedBy(status, false, false),
    reason: known.reason ?? null,
    waitingFor: known.waitingFor ?? null,
    attempts: known.attempts,
    nextAttemptAtMs: known.nextAttemptAtMs ?? null,
    errorCode: known.errorCode ?? null,
  };
}
