import type { ReachedProvider } from '#contracts/events';
import type { MessageStatus } from '#contracts/words';
import type { EvidenceOfFailure, MessageFacts, OwnError, UncertainFact } from './message-facts';
import { shownTime } from './provider-time';

export interface Waiting {
  reason: string;
  since: number;
  until: number | null;
  givesUpAt: number | null;
}

export interface StatusOfMessage {
  status: MessageStatus;
  reason: string | null;
  waiting: Waiting | null;
  error: (OwnError & { at: number }) | null;
  /** What the provider told of them where that can be; else when we heard it. */
  sentAt: number | null;
  deliveredAt: number | null;
  readAt: number | null;
  failedAt: number | null;
  /** No further attempt will be made. */
  final: boolean;
  reachedProvider: ReachedProvider;
  /** Facts contradict each other and the later kind of evidence won: failed and yet delivered, refused and yet sent. */
  correction: boolean;
  sequence: number;
}

/**
 * The join rule (provider-semantics 4.5, Meta's own rule that `delivered` beats `failed`): for each attempt read, delivered,
 * failed, sent, accepted; and of the attempts the best. So the failure of an earlier attempt does not touch one that was
 * accepted later, and only a delivery takes a message out of `failed`.
 */
export function statusOf(facts: MessageFacts): StatusOfMessage {
  const { own } = facts;
  const shown = (status: MessageStatus, more: Partial<StatusOfMessage> = {}): StatusOfMessage => ({
    status,
    reason: null,
    waiting: null,
    error: null,
    sentAt: shownAt(facts, facts.sentAt, facts.sentHeardAt),
    deliveredAt: shownAt(facts, facts.deliveredAt, facts.deliveredHeardAt),
    readAt: shownAt(facts, facts.readAt, facts.readHeardAt),
    failedAt: facts.failures[0] ? failureAt(facts, facts.failures[0]) : null,
    final: FINAL[status],
    reachedProvider: REACHED[status],
    correction: false,
    sequence: sequenceOf(facts),
    ...more,
  });

  const uncertain = openUncertainty(facts);
  const failure = failureThatCounts(facts, uncertain);
  const endedUnsent = ENDED_UNSENT.has(own?.kind ?? '') && !uncertain;
  const contradicted = facts.failures.length > 0 || endedUnsent;
  if (facts.readAt !== null) return shown('read', { correction: contradicted });
  if (facts.deliveredAt !== null) return shown('delivered', { correction: contradicted });

  const rejected = (attempt: number) =>
    facts.failures.some((one) => one.attempt === attempt) ||
    (own?.kind === 'failed' && own.reachedProvider && own.attempt === attempt);
  // A hold by the provider is an acceptance as well, but nothing has left it yet.
  const passedOn = facts.passedOn.some((attempt) => !rejected(attempt));
  if (passedOn) return shown(facts.sentAt === null ? 'submitted' : 'sent', { correction: endedUnsent });
  if (own?.kind === 'submitted' && !rejected(own.attempt)) return shown('submitted');
  if (failure) {
    const { code, providerCode, text } = failure;
    const at = failureAt(facts, failure);
    return shown('failed', { reason: code, error: { code, providerCode, text, at }, failedAt: at, reachedProvider: 'yes' });
  }

  if (uncertain) return shown('uncertain', { reason: uncertain.reason });
  if (!own) return shown('submitted');
  switch (own.kind) {
    case 'held':
      return shown('waiting', {
        reason: own.reason,
        waiting: { reason: own.reason, since: own.since, until: own.until, givesUpAt: own.givesUpAt },
      });
    case 'retry':
      return shown('waiting', {
        reason: 'retry',
        waiting: { reason: 'retry', since: own.at, until: own.until, givesUpAt: null },
        error: { ...own.error, at: own.at },
      });
    case 'submitted':
      return shown('submitted');
    case 'failed':
      return shown('failed', {
        reason: own.error.code,
        error: { ...own.error, at: own.at },
        failedAt: own.at,
        reachedProvider: own.reachedProvider ? 'yes' : 'no',
      });
    case 'uncertain':
      return shown('uncertain', { reason: own.reason });
    case 'unconfirmed':
      return shown('unconfirmed');
    case 'refused':
      return shown(own.status, { reason: own.reason, reachedProvider: own.afterUncertain || facts.uncertain ? 'maybe' : 'no' });
    default:
      return own satisfies never;
  }
}

function shownAt(facts: MessageFacts, at: number | null, heardAt: number | null): number | null {
  // Of whatever attempt: none was called before the first.
  return at === null ? null : shownTime({ at, heardAt }, calledAtLeast(facts, 1));
}

function failureAt(facts: MessageFacts, { attempt, at, heardAt }: EvidenceOfFailure): number {
  return shownTime({ at, heardAt: heardAt ?? null }, calledAtLeast(facts, attempt));
}

/** The provider was not called for this attempt before: the call itself where it is known, else the due time, since nothing is early. */
function calledAtLeast({ own, submitted }: MessageFacts, attempt: number): number | null {
  if (submitted && submitted.attempt <= attempt) return submitted.calledAt;
  return own?.dueAt ?? null;
}

/**
 * The attempt whose outcome is still open. A final answer of the gate ends its resend, and a hold lets the resend wait: neither
 * says whether the message arrived.
 */
function openUncertainty({ own, uncertain }: MessageFacts): UncertainFact | null {
  if (!own || !uncertain) return null;
  switch (own.kind) {
    case 'uncertain':
      return uncertain;
    case 'held':
      return own.step === uncertain.step ? uncertain : null;
    case 'refused':
      return own.afterUncertain ? uncertain : null;
    case 'retry':
    case 'submitted':
    case 'failed':
    case 'unconfirmed':
      return null;
    default:
      return own satisfies never;
  }
}

const ENDED_UNSENT: ReadonlySet<string> = new Set(['failed', 'refused', 'unconfirmed']);

/** Evidence of failure settles what the sender holds for accepted or does not know; a retry that it plans already knows better. */
function failureThatCounts({ own, failures }: MessageFacts, uncertain: UncertainFact | null): EvidenceOfFailure | null {
  const last = failures.at(-1);
  if (!last) return null;
  if (!own) return last;
  if (uncertain) return failures.findLast((failure) => failure.attempt === uncertain.attempt) ?? null;
  switch (own.kind) {
    case 'submitted':
    case 'uncertain':
    case 'unconfirmed':
      return failures.findLast((failure) => failure.attempt === own.attempt) ?? null;
    case 'held':
    case 'retry':
    case 'failed':
    case 'refused':
      return null;
    default:
      return own satisfies never;
  }
}

const FINAL: Record<MessageStatus, boolean> = {
  scheduled: false,
  waiting: false,
  sending: false,
  // Until the evidence window ends: see the run's sweep.
  submitted: false,
  sent: false,
  delivered: true,
  read: true,
  uncertain: false,
  unconfirmed: true,
  failed: true,
  refused: true,
  cancelled: true,
  expired: true,
};

const REACHED: Record<MessageStatus, ReachedProvider> = {
  scheduled: 'no',
  waiting: 'no',
  sending: 'maybe',
  submitted: 'yes',
  sent: 'yes',
  delivered: 'yes',
  read: 'yes',
  uncertain: 'maybe',
  unconfirmed: 'maybe',
  failed: 'yes',
  refused: 'no',
  cancelled: 'no',
  expired: 'no',
};

/** No message in one of these can be sent any more; a run whose messages are all in them is completed. */
export const ENDED_STATUSES: ReadonlySet<MessageStatus> = new Set([
  'submitted',
  'sent',
  'delivered',
  'read',
  'unconfirmed',
  'failed',
  'refused',
  'cancelled',
  'expired',
]);

const MS_DIGITS = 10_000_000_000;
const PER_STEP = 100;
const MOST_EVIDENCE = 48;
/** Of other kinds, the record does not keep that an outcome was uncertain once. */
const WITH_UNCERTAINTY: ReadonlySet<string> = new Set(['uncertain', 'held', 'refused']);
/** A hold may be a little earlier than due: `not yet`, by the gate's clock. */
const DAY_MS = 86_400_000;
const MOST_STEPS = 8_999;

/**
 * Rises with every change, and is the same for the same facts: a rebuilt read model tells the same sequences and event ids.
 * Decimal: the step of the claim, two digits for the kinds of evidence, ten for the milliseconds from a day before due to the
 * sender's fact (two holds of one step differ in nothing else). Below 2^53. `evidenceEnded`: told once more, as final, because
 * nothing more was heard.
 */
export function sequenceOf(facts: MessageFacts, evidenceEnded = false): number {
  const evidence =
    Number(facts.uncertain !== null && WITH_UNCERTAINTY.has(facts.own?.kind ?? '')) +
    Number(facts.sentAt !== null) +
    Number(facts.deliveredAt !== null) +
    Number(facts.readAt !== null) +
    facts.passedOn.length +
    facts.failures.length;
  const own = facts.own;
  const step = own ? Math.min(own.step, MOST_STEPS) : 0;
  const late = own ? Math.min(Math.max(own.at - own.dueAt + DAY_MS, 0), MS_DIGITS - 1) : 0;
  // One more than counted, so that the first fact about a message never has the sequence 0.
  return (step * PER_STEP + Math.min(evidence, MOST_EVIDENCE) * 2 + Number(evidenceEnded) + 1) * MS_DIGITS + late;
}
