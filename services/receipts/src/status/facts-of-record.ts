import type { Wait } from '#contracts/events';
import {
  factsOfEvidence,
  factsOfOwn,
  mergeFacts,
  nothingKnown,
  type EvidenceFact,
  type MessageFacts,
  type OwnFact,
  type SubmittedFact,
  type UncertainFact,
} from './message-facts';

/** What the sender and this service have on record of one message; instants in milliseconds. */
export interface MessageRecord {
  claim: ClaimRecord | null;
  waiting: WaitingRecord | null;
  attempts: AttemptRecord[];
  evidence: EvidenceFact[];
}

export interface ClaimRecord {
  position: number;
  revision: number;
  dueAt: number;
  state: 'sending' | 'accepted' | 'failed' | 'retry_wait' | 'uncertain' | 'unconfirmed' | 'refused' | 'cancelled' | 'expired';
  step: number;
  attempt: number;
  reason: string | null;
  errorCode: string | null;
  nextAttemptAt: number | null;
  providerMessageId: string | null;
  updatedAt: number;
}

export interface WaitingRecord {
  position: number;
  revision: number;
  dueAt: number;
  validUntil: number | null;
  reason: string;
  since: number;
  wakeAt: number;
  givesUpAt: number;
}

export interface AttemptRecord {
  attempt: number;
  begunAt: number;
  calledAt: number | null;
  endedAt: number | null;
  outcome: string | null;
  errorCode: string | null;
  providerCode: string | null;
  text: string | null;
  providerMessageId: string | null;
  waits: Wait[] | null;
}

/**
 * The facts that the events of a message would have left, from what is kept of it for good. Without one of its own where there is no
 * claim and no hold; a claim that is at a provider now has told nothing since its last wait, which nobody keeps.
 */
export function factsOfRecord(record: MessageRecord): MessageFacts {
  const said = record.evidence.map(factsOfEvidence).reduce(mergeFacts, nothingKnown);
  const named = record.attempts.reduce<MessageFacts>(
    (facts, { attempt, providerMessageId }) =>
      providerMessageId === null ? facts : mergeFacts(facts, { ...nothingKnown, provider: { attempt, id: providerMessageId } }),
    said,
  );
  const own = ownOf(record);
  return own === null ? named : mergeFacts(named, own);
}

function ownOf(record: MessageRecord): MessageFacts | null {
  const { claim, waiting } = record;
  if (claim === null) return waiting === null ? null : heldBeforeClaim(waiting);
  const base = {
    step: claim.step,
    at: claim.updatedAt,
    position: claim.position,
    revision: claim.revision,
    dueAt: claim.dueAt,
  };
  const { attempt } = claim;
  const uncertain = uncertainOf(record, claim);
  const withUncertain = (facts: MessageFacts): MessageFacts => ({ ...facts, uncertain: facts.uncertain ?? uncertain });
  // A hold that came after the claim's last move and is told as one.
  const heldSince = waiting && waiting.reason !== (claim.reason ?? 'retry') && waiting.reason !== 'retry' ? waiting : null;
  switch (claim.state) {
    case 'sending':
      return null;
    case 'accepted':
      return submittedOf(record, claim, base);
    case 'failed': {
      const last = record.attempts.find((one) => one.attempt === attempt);
      const rejected = last?.outcome === 'failed' ? last : null;
      const said = record.evidence.find((one) => one.kind === 'failed' && one.attempt === attempt)?.error ?? null;
      const code = claim.errorCode ?? 'request_rejected';
      const source = rejected ?? (code === 'hold_expired' ? null : said);
      return factsOfOwn({
        ...base,
        kind: 'failed',
        attempt,
        reachedProvider: rejected ? rejected.calledAt !== null : source !== null,
        error: { code, providerCode: source?.providerCode ?? null, text: source?.text ?? null },
      });
    }
    case 'retry_wait': {
      if (heldSince) return factsOfOwn(heldAt(base, heldSince));
      const last = record.attempts.find((one) => one.attempt === attempt);
      return factsOfOwn({
        ...base,
        kind: 'retry',
        attempt,
        until: claim.nextAttemptAt ?? claim.updatedAt,
        error: { code: claim.errorCode ?? 'not_sent', providerCode: last?.providerCode ?? null, text: last?.text ?? null },
      });
    }
    case 'uncertain':
      if (heldSince) return withUncertain({ ...factsOfOwn(heldAt(base, heldSince)), attempts: attempt });
      return factsOfOwn({
        ...base,
        kind: 'uncertain',
        attempt,
        reason: claim.reason ?? 'deadline',
        since: claim.updatedAt,
        until: claim.updatedAt,
      });
    case 'unconfirmed':
      return factsOfOwn({ ...base, kind: 'unconfirmed', attempt });
    case 'refused':
    case 'cancelled':
    case 'expired':
      return withUncertain({
        ...factsOfOwn({
          ...base,
          kind: 'refused',
          status: claim.state,
          reason: claim.reason ?? claim.state,
          afterUncertain: false,
        }),
        attempts: attempt,
      });
    default:
      return claim.state satisfies never;
  }
}

type Base = Pick<OwnFact, 'step' | 'at' | 'position' | 'revision' | 'dueAt'>;

function heldAt(base: Base, { reason, since, wakeAt, validUntil, givesUpAt }: WaitingRecord): OwnFact {
  // Until somebody ends it: then the row is only looked at when the message itself ends.
  const until = wakeAt < Math.min(givesUpAt, validUntil ?? givesUpAt) ? wakeAt : null;
  return { ...base, kind: 'held', at: since, reason, since, until, givesUpAt };
}

function heldBeforeClaim(waiting: WaitingRecord): MessageFacts | null {
  // Merely ahead of its time: that is told to nobody.
  if (waiting.reason === 'not_yet') return null;
  const { position, revision, dueAt, since } = waiting;
  return factsOfOwn(heldAt({ step: 0, at: since, position, revision, dueAt }, waiting));
}

function uncertainOf({ attempts }: MessageRecord, claim: ClaimRecord): UncertainFact | null {
  const last = attempts.filter(({ outcome }) => outcome === 'uncertain').at(-1);
  if (claim.state === 'uncertain') return { step: claim.step, attempt: claim.attempt, reason: claim.reason ?? 'deadline' };
  return last ? { step: claim.step - 1, attempt: last.attempt, reason: last.errorCode ?? 'deadline' } : null;
}

/** By the answer where there was one, else by the evidence that settled the claim. */
function submittedOf({ attempts, evidence }: MessageRecord, claim: ClaimRecord, base: Base): MessageFacts {
  const answered = attempts.findLast(({ outcome, attempt }) => outcome === 'accepted' && attempt === claim.attempt);
  const submitted = answered ? byAnswer(answered, claim) : byEvidence(attempts, evidence, claim);
  return factsOfOwn(
    { ...base, kind: 'submitted', attempt: submitted.attempt },
    submitted,
    (answered ? answered.providerMessageId : null) ?? claim.providerMessageId,
  );
}

function byAnswer({ attempt, calledAt, endedAt, begunAt, waits }: AttemptRecord, { step }: ClaimRecord): SubmittedFact {
  const at = endedAt ?? begunAt;
  return { step, attempt, at, calledAt: calledAt ?? at, waits: waits ?? [] };
}

const POSITIVE: ReadonlySet<EvidenceFact['kind']> = new Set(['sent', 'delivered', 'read', 'played', 'held']);

function byEvidence(
  attempts: AttemptRecord[],
  evidence: EvidenceFact[],
  { step, attempt: claimed, updatedAt }: ClaimRecord,
): SubmittedFact {
  const positive = evidence.filter(({ kind }) => POSITIVE.has(kind)).sort((a, b) => a.attempt - b.attempt || a.at - b.at)[0];
  const attempt = positive && positive.attempt >= 1 && positive.attempt <= claimed ? positive.attempt : claimed;
  const made = attempts.find((one) => one.attempt === attempt);
  const calledAt = made?.calledAt ?? made?.begunAt ?? updatedAt;
  return { step, attempt, at: Math.max(calledAt, Math.min(positive?.at ?? calledAt, updatedAt)), calledAt, waits: [] };
}
