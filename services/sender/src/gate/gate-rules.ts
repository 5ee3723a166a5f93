import type { ClaimState, WaitReason } from '#contracts/words';

/**
 * The gate's rules for one message, as values in and values out. The database applies them to batches (services/sender/migrations);
 * a property test runs both side by side. Instants are milliseconds of one clock.
 */
export interface GateFacts {
  status: 'active' | 'paused' | 'cancelled';
  revision: number;
  runHeld: boolean;
  onUncertain: 'leave' | 'resend';
  holdGiveUpMs: number;
}

export interface ClaimFacts {
  state: ClaimState;
  attempt: number;
  /** Rises with every move and orders the message's events. */
  step: number;
  revision: number;
  retriesUsed: number;
  dueAt: number;
  validUntil: number | null;
  deadline: number | null;
  sweepAt: number | null;
  nextAttemptAt: number | null;
  heldSince: number | null;
  reason: string | null;
  /** An answer of the provider was recorded; without it evidence alone speaks for an accepted claim. */
  answered: boolean;
}

export interface WaitingFacts {
  reason: WaitReason | 'not_yet';
  wakeAt: number;
  givesUpAt: number;
  attempt: number;
}

export interface EvidenceFacts {
  attempt: number;
  kind: 'sent' | 'delivered' | 'read' | 'failed' | 'held' | 'played';
}

export interface Message {
  claim: ClaimFacts | null;
  waiting: WaitingFacts | null;
  evidence: readonly EvidenceFacts[];
}

export interface Question {
  revision: number;
  dueAt: number;
  validUntil: number | null;
  suppressed: boolean;
  /** Reason and end of what holds the number, if anything does. */
  numberHold: { reason: WaitReason; until: number | null } | null;
  deadlineMs: number;
  now: number;
}

export type Answer =
  | { kind: 'claimed'; attempt: number; step: number; revision: number }
  | { kind: 'final'; status: 'cancelled' | 'expired' | 'refused' | 'failed'; afterUncertain: boolean }
  | { kind: 'held'; reason: WaitReason | 'not_yet' }
  | { kind: 'silent'; why: 'duplicate' | 'superseded' }
  | { kind: 'settled'; state: ClaimState };

export interface Windows {
  graceMs: number;
  evidenceWindowMs: number;
  resendAfterMs: number;
}

export type ResultFacts =
  | { attempt: number; outcome: 'accepted' | 'failed' | 'uncertain' }
  | { attempt: number; outcome: 'retry'; nextAttemptAt: number; usesRetry: boolean; reason: WaitReason }
  | { attempt: number; outcome: 'not_sent' };

export const NOTHING_KNOWN: Message = { claim: null, waiting: null, evidence: [] };

/** May this message be sent now, and if not, what becomes of it. The order of the questions is part of the rules. */
export function ask(message: Message, gate: GateFacts, question: Question): { answer: Answer; message: Message } {
  const { claim, waiting } = message;
  const { now } = question;
  if (claim) {
    const mayGoOn =
      claim.state === 'retry_wait' ||
      (claim.state === 'uncertain' && claim.nextAttemptAt !== null && gate.onUncertain === 'resend');
    if (!mayGoOn) return { answer: { kind: 'silent', why: 'duplicate' }, message: { ...message, waiting: null } };
    const settled = settleByEvidence(message);
    if (settled.claim!.state !== claim.state)
      return { answer: { kind: 'settled', state: settled.claim!.state }, message: settled };
  } else if (question.revision !== gate.revision) {
    return { answer: { kind: 'silent', why: 'superseded' }, message: { ...message, waiting: null } };
  }

  const { dueAt, validUntil } = claim ?? question;
  const end = endOf(gate, question, waiting, validUntil);
  if (end) return endMessage(message, question, end);

  const hold = holdOf(gate, question, claim, dueAt);
  if (hold) {
    const givesUpAt = waiting?.givesUpAt ?? Math.max(dueAt, claim?.heldSince ?? now) + gate.holdGiveUpMs;
    const wakeAt = Math.min(hold.until ?? Infinity, validUntil ?? Infinity, givesUpAt);
    return {
      answer: { kind: 'held', reason: hold.reason },
      message: { ...message, waiting: { reason: hold.reason, wakeAt, givesUpAt, attempt: claim?.attempt ?? 0 } },
    };
  }

  const deadline = now + question.deadlineMs;
  const next: ClaimFacts = {
    ...(claim ?? { ...firstClaim(question), attempt: 0, step: 0 }),
    state: 'sending',
    attempt: (claim?.attempt ?? 0) + 1,
    step: (claim?.step ?? 0) + 1,
    deadline,
    sweepAt: deadline,
    nextAttemptAt: null,
    reason: null,
    answered: false,
  };
  const { attempt, step, revision } = next;
  return { answer: { kind: 'claimed', attempt, step, revision }, message: { ...message, claim: next, waiting: null } };
}

type End = 'cancelled' | 'expired' | 'suppressed' | 'hold_expired';

function endOf(gate: GateFacts, question: Question, waiting: WaitingFacts | null, validUntil: number | null): End | null {
  if (gate.status === 'cancelled') return 'cancelled';
  if (validUntil !== null && validUntil <= question.now) return 'expired';
  if (question.suppressed) return 'suppressed';
  if (waiting && waiting.givesUpAt <= question.now) return 'hold_expired';
  return null;
}

function endMessage(message: Message, question: Question, end: End): { answer: Answer; message: Message } {
  const { claim } = message;
  const status = end === 'suppressed' ? 'refused' : end === 'hold_expired' ? 'failed' : end;
  // After an uncertain outcome only the resend ends: whether the attempt before arrived is still open.
  if (claim?.state === 'uncertain') {
    const next = { ...claim, nextAttemptAt: null, step: claim.step + 1 };
    return { answer: { kind: 'final', status, afterUncertain: true }, message: { ...message, claim: next, waiting: null } };
  }
  const next: ClaimFacts = {
    ...(claim ?? { ...firstClaim(question), step: 0 }),
    state: status,
    step: (claim?.step ?? 0) + 1,
    nextAttemptAt: null,
    reason: status === 'failed' ? null : end,
  };
  return { answer: { kind: 'final', status, afterUncertain: false }, message: { ...message, claim: next, waiting: null } };
}

function holdOf(
  gate: GateFacts,
  question: Question,
  claim: ClaimFacts | null,
  dueAt: number,
): { reason: WaitReason | 'not_yet'; until: number | null } | null {
  if (gate.status === 'paused') return { reason: 'paused', until: null };
  if (gate.runHeld) return { reason: 'template', until: null };
  if (question.numberHold) return question.numberHold;
  if (dueAt > question.now) return { reason: 'not_yet', until: dueAt };
  if (claim?.nextAttemptAt != null && claim.nextAttemptAt > question.now) {
    const reason = claim.state === 'retry_wait' && claim.reason ? (claim.reason as WaitReason) : 'retry';
    return { reason, until: claim.nextAttemptAt };
  }
  return null;
}

/** A result moves the claim only while the claim is still about its attempt. */
export function recordResult(
  message: Message,
  gate: GateFacts,
  result: ResultFacts,
  { evidenceWindowMs, resendAfterMs }: Windows,
  now: number,
): { applied: boolean; message: Message } {
  const { claim } = message;
  const state = claim && claim.attempt === result.attempt ? stateAfter(claim, result) : null;
  if (!claim || !state) return { applied: false, message };
  const next: ClaimFacts = {
    ...claim,
    state,
    step: claim.step + 1,
    reason: null,
    sweepAt: null,
    nextAttemptAt: null,
    answered: state !== 'uncertain',
  };
  switch (state) {
    case 'retry_wait':
      next.nextAttemptAt = result.outcome === 'retry' ? result.nextAttemptAt : now;
      next.reason = result.outcome === 'retry' ? result.reason : 'retry';
      next.retriesUsed += result.outcome === 'retry' && result.usesRetry ? 1 : 0;
      next.heldSince ??= now;
      break;
    case 'uncertain':
      next.sweepAt = now + evidenceWindowMs;
      if (gate.onUncertain === 'resend') {
        next.nextAttemptAt = claim.deadline! + resendAfterMs;
        next.heldSince ??= now;
      }
      break;
  }
  const moved = { ...message, claim: next, waiting: waitingFor(next, gate, now) };
  // A `failed` receipt may have come while the outcome was still open.
  return { applied: true, message: state === 'uncertain' ? settleByEvidence(moved) : moved };
}

function stateAfter(claim: ClaimFacts, { outcome }: ResultFacts): ClaimState | null {
  switch (outcome) {
    case 'accepted':
      return claim.state === 'sending' || claim.state === 'uncertain' || (claim.state === 'accepted' && !claim.answered)
        ? 'accepted'
        : null;
    case 'failed':
      return claim.state === 'sending' || claim.state === 'uncertain' ? 'failed' : null;
    case 'retry':
    case 'not_sent':
      return claim.state === 'sending' || claim.state === 'uncertain' ? 'retry_wait' : null;
    case 'uncertain':
      return claim.state === 'sending' ? 'uncertain' : null;
    default:
      return outcome satisfies never;
  }
}

/** The row that brings a retry or a resend back to the gate. */
function waitingFor(claim: ClaimFacts, gate: GateFacts, now: number): WaitingFacts | null {
  if (claim.nextAttemptAt === null) return null;
  const givesUpAt = Math.max(claim.dueAt, claim.heldSince ?? now) + gate.holdGiveUpMs;
  const next = gate.status === 'cancelled' ? now : claim.nextAttemptAt;
  return {
    reason: claim.state === 'retry_wait' ? ((claim.reason ?? 'retry') as WaitReason) : 'retry',
    wakeAt: Math.min(next, claim.validUntil ?? Infinity, givesUpAt),
    givesUpAt,
    attempt: claim.attempt,
  };
}

/** Evidence is kept whatever the claim's state; attempt 0 stands for the latest one. */
export function recordEvidence(message: Message, { attempt, kind }: EvidenceFacts): Message {
  const evidence = [...message.evidence, { attempt: attempt > 0 ? attempt : (message.claim?.attempt ?? 0), kind }];
  return settleByEvidence({ ...message, evidence });
}

/** Positive evidence about any attempt settles everything open; `failed` about the last attempt only what is uncertain. */
export function settleByEvidence(message: Message): Message {
  const { claim, evidence } = message;
  if (!claim) return message;
  const positive = evidence.some(({ kind }) => kind !== 'failed');
  const failed = evidence.some(({ kind, attempt }) => kind === 'failed' && attempt === claim.attempt);
  const isOpen = ['sending', 'retry_wait', 'uncertain', 'unconfirmed'].includes(claim.state);
  const isUncertain = claim.state === 'uncertain' || claim.state === 'unconfirmed';
  const state = positive && isOpen ? 'accepted' : failed && isUncertain ? 'failed' : null;
  if (!state) return message;
  const next: ClaimFacts = { ...claim, state, step: claim.step + 1, sweepAt: null, nextAttemptAt: null, reason: null };
  return { ...message, claim: next, waiting: null };
}

/** What nobody will report any more. */
export function sweep(
  message: Message,
  gate: GateFacts,
  { graceMs, evidenceWindowMs, resendAfterMs }: Windows,
  now: number,
): Message {
  const { claim } = message;
  if (!claim || claim.sweepAt === null) return message;
  if (claim.state === 'sending' && claim.sweepAt + graceMs <= now) {
    const settled = settleByEvidence(message);
    if (settled !== message) return settled;
    const resends = gate.onUncertain === 'resend';
    const next: ClaimFacts = {
      ...claim,
      state: 'uncertain',
      step: claim.step + 1,
      reason: 'deadline',
      sweepAt: now + evidenceWindowMs,
      nextAttemptAt: resends ? claim.deadline! + resendAfterMs : null,
      heldSince: resends ? (claim.heldSince ?? now) : claim.heldSince,
    };
    return settleByEvidence({ ...message, claim: next, waiting: waitingFor(next, gate, now) });
  }
  if (claim.state === 'uncertain' && claim.sweepAt <= now) {
    const settled = settleByEvidence(message);
    if (settled !== message) return settled;
    const next: ClaimFacts = { ...claim, state: 'unconfirmed', step: claim.step + 1, sweepAt: null, nextAttemptAt: null };
    return { ...message, claim: next, waiting: null };
  }
  return message;
}

/** The end of a cancelled schedule's message, once the cancel is counted. */
export function settleCancel(message: Message, question: Pick<Question, 'dueAt' | 'validUntil' | 'revision'>): Message {
  const { claim, waiting } = message;
  if (claim?.state === 'retry_wait') {
    const next: ClaimFacts = { ...claim, state: 'cancelled', step: claim.step + 1, nextAttemptAt: null, reason: 'cancelled' };
    return { ...message, claim: next, waiting: null };
  }
  if (!claim && waiting)
    return { ...message, claim: { ...firstClaim(question), state: 'cancelled', reason: 'cancelled' }, waiting: null };
  return message;
}

function firstClaim({ revision, dueAt, validUntil }: Pick<Question, 'dueAt' | 'validUntil' | 'revision'>): ClaimFacts {
  return {
    state: 'sending',
    attempt: 0,
    step: 1,
    revision,
    retriesUsed: 0,
    dueAt,
    validUntil,
    deadline: null,
    sweepAt: null,
    nextAttemptAt: null,
    heldSince: null,
    reason: null,
    answered: false,
  };
}
