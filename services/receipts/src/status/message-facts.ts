import type { Wait } from '#contracts/events';
import { compareProviderTimes, readProviderTime } from './provider-time';

/**
 * What is known of one message, as facts that are merged by operators that do not care for order or repetition: the sender's
 * fact with the highest step wins, evidence keeps its earliest instant. The status is computed from them (message-status.ts),
 * so it can't depend on what arrived first.
 */
export interface MessageFacts {
  /** What the sender said last, by the step of its claim. Null while only evidence is known. */
  own: OwnFact | null;
  /** The highest attempt that anything named. */
  attempts: number;
  submitted: SubmittedFact | null;
  /** The last attempt whose outcome nobody knew. */
  uncertain: UncertainFact | null;
  /** As the provider calls the message of the highest attempt that has a name. */
  provider: ProviderName | null;
  sentAt: number | null;
  deliveredAt: number | null;
  readAt: number | null;
  /** When these were heard, where they were told so late that they have yet to be believed (provider-time.ts). */
  sentHeardAt: number | null;
  deliveredHeardAt: number | null;
  readHeardAt: number | null;
  /** Attempts that the provider says it has sent or holds; ascending. */
  passedOn: number[];
  /** One for each attempt that the provider says has failed; ascending by attempt. */
  failures: EvidenceOfFailure[];
}

interface OwnFactBase {
  step: number;
  /** When the sender recorded it: decides between facts of one step, such as two holds before the first claim. */
  at: number;
  position: number;
  revision: number;
  dueAt: number;
}

export type OwnFact =
  | (OwnFactBase & { kind: 'held'; reason: string; since: number; until: number | null; givesUpAt: number })
  | (OwnFactBase & { kind: 'retry'; attempt: number; until: number; error: OwnError })
  | (OwnFactBase & { kind: 'submitted'; attempt: number })
  | (OwnFactBase & { kind: 'failed'; attempt: number; reachedProvider: boolean; error: OwnError })
  | (OwnFactBase & { kind: 'uncertain'; attempt: number; reason: string; since: number; until: number })
  | (OwnFactBase & { kind: 'unconfirmed'; attempt: number })
  | (OwnFactBase & { kind: 'refused'; status: 'refused' | 'cancelled' | 'expired'; reason: string; afterUncertain: boolean });

export type OwnKind = OwnFact['kind'];

export interface OwnError {
  code: string;
  providerCode: string | null;
  text: string | null;
}

export interface SubmittedFact {
  step: number;
  attempt: number;
  at: number;
  calledAt: number;
  waits: Wait[];
}

export interface UncertainFact {
  step: number;
  attempt: number;
  reason: string;
}

export interface ProviderName {
  attempt: number;
  id: string;
}

export interface EvidenceOfFailure extends OwnError {
  attempt: number;
  at: number;
  /** As with the other kinds of evidence; left out where there is no doubt. */
  heardAt?: number;
}

/** One piece of evidence. `unknown` is kept as a record but says nothing. */
export interface EvidenceFact {
  attempt: number;
  kind: 'sent' | 'delivered' | 'read' | 'played' | 'held' | 'failed' | 'unknown';
  /** As the provider told it. */
  at: number;
  recordedAt: number;
  providerMessageId: string | null;
  error: OwnError | null;
}

export const nothingKnown: MessageFacts = Object.freeze({
  own: null,
  attempts: 0,
  submitted: null,
  uncertain: null,
  provider: null,
  sentAt: null,
  deliveredAt: null,
  readAt: null,
  sentHeardAt: null,
  deliveredHeardAt: null,
  readHeardAt: null,
  passedOn: [],
  failures: [],
});

/** The facts that one event of a sender adds. */
export function factsOfOwn(
  own: OwnFact,
  submitted: SubmittedFact | null = null,
  providerMessageId: string | null = null,
): MessageFacts {
  const attempt = 'attempt' in own ? own.attempt : 0;
  return {
    ...nothingKnown,
    own,
    attempts: attempt,
    submitted,
    uncertain: own.kind === 'uncertain' ? { step: own.step, attempt: own.attempt, reason: own.reason } : null,
    provider: providerMessageId === null ? null : { attempt, id: providerMessageId },
  };
}

/** The facts that one piece of evidence adds. */
export function factsOfEvidence({ attempt, kind, at: toldAt, recordedAt, providerMessageId, error }: EvidenceFact): MessageFacts {
  const { at, heardAt } = readProviderTime(toldAt, recordedAt);
  const facts: MessageFacts = {
    ...nothingKnown,
    attempts: attempt,
    provider: providerMessageId === null ? null : { attempt, id: providerMessageId },
  };
  switch (kind) {
    case 'sent':
      return { ...facts, sentAt: at, sentHeardAt: heardAt, passedOn: [attempt] };
    case 'delivered':
      return { ...facts, deliveredAt: at, deliveredHeardAt: heardAt };
    // Nobody plays a voice message without having opened it.
    case 'read':
    case 'played':
      return { ...facts, readAt: at, readHeardAt: heardAt };
    case 'held':
      return { ...facts, passedOn: [attempt] };
    case 'failed':
      return {
        ...facts,
        failures: [
          {
            attempt,
            at,
            ...(heardAt === null ? {} : { heardAt }),
            ...(error ?? { code: 'request_rejected', providerCode: null, text: null }),
          },
        ],
      };
    case 'unknown':
      return facts;
    default:
      return kind satisfies never;
  }
}

/** Whether `merged`, made of `known` and something else, says no more than `known` did. */
export function addsNothing(known: MessageFacts, merged: MessageFacts): boolean {
  return (Object.keys(known) as Array<keyof MessageFacts>).every((part) => known[part] === merged[part]);
}

/** Associative, commutative, idempotent: a join. Parts of `a` that `b` does not change are kept as they are (see addsNothing). */
export function mergeFacts(a: MessageFacts, b: MessageFacts): MessageFacts {
  const sent = isEarlier(b.sentAt, b.sentHeardAt, a.sentAt, a.sentHeardAt) ? b : a;
  const delivered = isEarlier(b.deliveredAt, b.deliveredHeardAt, a.deliveredAt, a.deliveredHeardAt) ? b : a;
  const read = isEarlier(b.readAt, b.readHeardAt, a.readAt, a.readHeardAt) ? b : a;
  return {
    own: latest(a.own, b.own, compareOwn),
    attempts: Math.max(a.attempts, b.attempts),
    submitted: latest(a.submitted, b.submitted, compareSubmitted),
    uncertain: latest(a.uncertain, b.uncertain, compareUncertain),
    provider: latest(a.provider, b.provider, compareProvider),
    sentAt: sent.sentAt,
    deliveredAt: delivered.deliveredAt,
    readAt: read.readAt,
    sentHeardAt: sent.sentHeardAt,
    deliveredHeardAt: delivered.deliveredHeardAt,
    readHeardAt: read.readHeardAt,
    passedOn: b.passedOn.length === 0 ? a.passedOn : unionOf(a.passedOn, b.passedOn),
    failures: b.failures.length === 0 ? a.failures : unionOfFailures(a.failures, b.failures),
  };
}

function latest<T>(a: T | null, b: T | null, compare: (a: T, b: T) => number): T | null {
  if (a === null) return b;
  if (b === null) return a;
  return compare(a, b) >= 0 ? a : b;
}

function isEarlier(at: number | null, heardAt: number | null, thanAt: number | null, thanHeardAt: number | null): boolean {
  if (at === null) return false;
  return thanAt === null || compareProviderTimes({ at, heardAt }, { at: thanAt, heardAt: thanHeardAt }) < 0;
}

/** At one step and one instant only a hold or a retry can meet its equal; the order just has to be total. */
const KIND_ORDER: Record<OwnKind, number> = {
  held: 0,
  retry: 1,
  uncertain: 2,
  unconfirmed: 3,
  refused: 4,
  failed: 5,
  submitted: 6,
};

function compareOwn(a: OwnFact, b: OwnFact): number {
  return a.step - b.step || a.at - b.at || KIND_ORDER[a.kind] - KIND_ORDER[b.kind] || compareText(canonical(a), canonical(b));
}

function compareSubmitted(a: SubmittedFact, b: SubmittedFact): number {
  return a.step - b.step || b.at - a.at || compareText(canonical(a), canonical(b));
}

function compareUncertain(a: UncertainFact, b: UncertainFact): number {
  return a.step - b.step || compareText(canonical(a), canonical(b));
}

function compareProvider(a: ProviderName, b: ProviderName): number {
  return a.attempt - b.attempt || compareText(a.id, b.id);
}

/** With sorted keys: a database gives them back in an order of its own. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([x], [y]) => compareText(x, y)))
      : part,
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function unionOf(a: number[], b: number[]): number[] {
  if (b.every((attempt) => a.includes(attempt))) return a;
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

function unionOfFailures(a: EvidenceOfFailure[], b: EvidenceOfFailure[]): EvidenceOfFailure[] {
  const byAttempt = new Map<number, EvidenceOfFailure>();
  for (const failure of [...a, ...b]) {
    const known = byAttempt.get(failure.attempt);
    if (!known || compareFailure(failure, known) < 0) byAttempt.set(failure.attempt, failure);
  }
  const union = [...byAttempt.values()].sort((x, y) => x.attempt - y.attempt);
  return union.length === a.length && union.every((failure, index) => failure === a[index]) ? a : union;
}

function compareFailure(a: EvidenceOfFailure, b: EvidenceOfFailure): number {
  return a.at - b.at || (a.heardAt ?? 0) - (b.heardAt ?? 0) || compareText(canonical(a), canonical(b));
}
