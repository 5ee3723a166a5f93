import type { MessageErrorCode, WaitReason } from '#contracts/words';
import { ANSWER_FACTS, type NotAccepted, type ProviderAnswer } from '../providers/answer';

export interface OutcomeContext {
  /** Of the attempt that was just made, from 1. */
  attempt: number;
  retriesUsed: number;
  retryDelaysMs: readonly number[];
  /** Wall clock. */
  now: number;
  /** From 0 to 1, for the jitter. */
  random: number;
  /** How often the same trouble of this number came before, for waits that grow: 0 the first time. */
  repetition: number;
}

interface Told {
  code: MessageErrorCode;
  providerCode: string | null;
  text: string | null;
}

/** What is recorded of the attempt. */
export type Outcome =
  | { kind: 'accepted'; providerMessageId: string; providerStatus: 'accepted' | 'held' }
  | (Told & { kind: 'failed'; reachedProvider: boolean })
  | (Told & { kind: 'retry'; nextAttemptAt: number; usesRetry: boolean; waitReason: WaitReason })
  | { kind: 'not_sent'; text: string | null; nextAttemptAt: number }
  | { kind: 'uncertain'; reason: string; text: string | null };

/** What else follows, for everybody who uses the same number, account, app or template. `until` null: until somebody ends it. */
export type Effect =
  | { kind: 'slow_number'; waitMs: number }
  | { kind: 'hold_number'; reason: 'account' | 'circuit'; scope: 'number' | 'waba' | 'app'; until: number | null; detail: string }
  | { kind: 'hold_template'; until: number; detail: string }
  | { kind: 'suppress_recipient'; code: MessageErrorCode };

export interface Decision {
  outcome: Outcome;
  effects: Effect[];
}

const TEMPLATE_HOLD_MS = 10 * 60_000;
/** Spread of a wait: what failed together must not come back together. */
const JITTER = 0.2;
/** Held messages come back a little after the hold ends; the hold of the gate keeps them if it was prolonged meanwhile. */
const AFTER_HOLD_MS = 1_000;

/** From an answer to what is recorded and what is held: the whole policy, without a clock, a random source or a database. */
export function decideOutcome(answer: ProviderAnswer, context: OutcomeContext): Decision {
  if (answer.class === 'accepted') {
    const { providerMessageId, providerStatus } = answer;
    return { outcome: { kind: 'accepted', providerMessageId, providerStatus }, effects: [] };
  }
  const told: Told = { code: answer.code, providerCode: answer.providerCode, text: answer.text };
  const { now } = context;
  switch (answer.class) {
    case 'not_sent':
      return { outcome: { kind: 'not_sent', text: answer.text, nextAttemptAt: now + notSentWait(context) }, effects: [] };
    case 'unknown':
      return { outcome: { kind: 'uncertain', reason: answer.code, text: answer.text }, effects: [] };
    case 'retry_checked':
      return { outcome: retryOrFail(answer, told, context), effects: [] };
    case 'recipient_later':
      return { outcome: later(told, now + jittered(grown(answer, context.attempt - 1), context), 'pair_limit'), effects: [] };
    case 'slow_number': {
      // One to two seconds, as Meta asks: a number that goes on at once is throttled for longer.
      const waitMs = Math.max(answer.waitMs, 1_000) * (1 + context.random);
      return { outcome: later(told, now + waitMs, 'pace'), effects: [{ kind: 'slow_number', waitMs }] };
    }
    case 'slow_app':
    case 'slow_waba': {
      const scope = answer.class === 'slow_app' ? 'app' : 'waba';
      return held(answer, told, context, { reason: 'circuit', scope, until: now + Math.max(answer.waitMs, 60_000) });
    }
    case 'pause_number': {
      const waitMs = Math.max(answer.waitMs, answer.growing ? grown(answer, context.repetition) : 0);
      return held(answer, told, context, { reason: 'circuit', scope: 'number', until: now + waitMs });
    }
    case 'stop_number':
    case 'stop_tenant':
      return held(answer, told, context, { reason: 'account', scope: 'number', until: null });
    case 'stop_waba':
      return held(answer, told, context, { reason: 'account', scope: 'waba', until: null });
    case 'pause_template': {
      const until = now + Math.max(answer.waitMs, TEMPLATE_HOLD_MS);
      const effects: Effect[] = [{ kind: 'hold_template', until, detail: detailOf(answer) }];
      return { outcome: later(told, until + AFTER_HOLD_MS * context.random, 'template'), effects };
    }
    case 'suppress_recipient':
      return { outcome: failed(told), effects: [{ kind: 'suppress_recipient', code: answer.code }] };
    case 'fail_recipient':
    case 'template_params':
    case 'fail_campaign':
    case 'fail_request':
      return { outcome: failed(told), effects: [] };
    default:
      return answer satisfies never;
  }
}

function failed(told: Told): Outcome {
  return { kind: 'failed', ...told, reachedProvider: true };
}

function later(told: Told, nextAttemptAt: number, waitReason: WaitReason): Outcome {
  return { kind: 'retry', ...told, nextAttemptAt, usesRetry: false, waitReason };
}

function held(
  answer: NotAccepted,
  told: Told,
  { now, random }: OutcomeContext,
  hold: { reason: 'account' | 'circuit'; scope: 'number' | 'waba' | 'app'; until: number | null },
): Decision {
  // Without an end it may go as soon as the hold is ended: until then the hold itself keeps it.
  const nextAttemptAt = hold.until === null ? now : hold.until + AFTER_HOLD_MS * random;
  return {
    outcome: later(told, nextAttemptAt, hold.reason),
    effects: [{ kind: 'hold_number', ...hold, detail: detailOf(answer) }],
  };
}

/** The schedule's delays, or the code's own wait where that is longer. Used up: the message has failed with the last reason. */
function retryOrFail(answer: NotAccepted, told: Told, context: OutcomeContext): Outcome {
  const allowed = Math.min(context.retryDelaysMs.length, answer.retriesAtMost ?? Number.POSITIVE_INFINITY);
  if (context.retriesUsed >= allowed) return { kind: 'failed', ...told, reachedProvider: true };
  const delay = jittered(context.retryDelaysMs[context.retriesUsed]!, context);
  const { usesRetry } = ANSWER_FACTS[answer.class];
  return { kind: 'retry', ...told, nextAttemptAt: context.now + Math.max(delay, answer.waitMs), usesRetry, waitReason: 'retry' };
}

/** A call that could not be made says nothing about the message; the wait only keeps a dead host from being called all the time. */
function notSentWait({ attempt, random }: OutcomeContext): number {
  return Math.min(30_000, 250 * 2 ** Math.min(attempt - 1, 7)) * (0.5 + random);
}

function grown(answer: NotAccepted, step: number): number {
  const { growing } = answer;
  if (!growing || growing.length === 0) return answer.waitMs;
  return Math.max(answer.waitMs, growing[Math.min(Math.max(0, step), growing.length - 1)]!);
}

function jittered(ms: number, { random }: OutcomeContext): number {
  return ms * (1 + JITTER * random);
}

function detailOf(answer: NotAccepted): string {
  return [answer.providerCode, answer.text].filter((part) => part !== null).join(': ') || answer.code;
}
