import type { MessageErrorCode } from '#contracts/words';

/**
 * What a provider's answer (or its absence) means, whichever provider it is. Adapters translate into this union and into nothing
 * else; what follows from each class is decided in ../outcome.
 */
export type AnswerClass =
  | 'accepted'
  | 'not_sent'
  | 'retry_checked'
  | 'slow_number'
  | 'slow_app'
  | 'slow_waba'
  | 'recipient_later'
  | 'fail_recipient'
  | 'suppress_recipient'
  | 'template_params'
  | 'pause_template'
  | 'fail_campaign'
  | 'fail_request'
  | 'pause_number'
  | 'stop_number'
  | 'stop_waba'
  | 'stop_tenant'
  | 'unknown';

/** What the class is about: which brake or hold it touches. */
export type AnswerScope = 'attempt' | 'message' | 'recipient' | 'template' | 'campaign' | 'number' | 'app' | 'waba' | 'tenant';

/** What becomes of this message: `later` is known not to be sent and tried again, `unknown` may or may not be sent. */
export type AnswerFate = 'accepted' | 'later' | 'failed' | 'unknown';

export const ANSWER_FACTS: Readonly<Record<AnswerClass, { scope: AnswerScope; fate: AnswerFate; usesRetry: boolean }>> = {
  accepted: { scope: 'message', fate: 'accepted', usesRetry: false },
  not_sent: { scope: 'attempt', fate: 'later', usesRetry: false },
  retry_checked: { scope: 'message', fate: 'later', usesRetry: true },
  slow_number: { scope: 'number', fate: 'later', usesRetry: false },
  slow_app: { scope: 'app', fate: 'later', usesRetry: false },
  slow_waba: { scope: 'waba', fate: 'later', usesRetry: false },
  recipient_later: { scope: 'recipient', fate: 'later', usesRetry: false },
  fail_recipient: { scope: 'recipient', fate: 'failed', usesRetry: false },
  suppress_recipient: { scope: 'recipient', fate: 'failed', usesRetry: false },
  template_params: { scope: 'campaign', fate: 'failed', usesRetry: false },
  pause_template: { scope: 'template', fate: 'later', usesRetry: false },
  fail_campaign: { scope: 'campaign', fate: 'failed', usesRetry: false },
  fail_request: { scope: 'message', fate: 'failed', usesRetry: false },
  pause_number: { scope: 'number', fate: 'later', usesRetry: false },
  stop_number: { scope: 'number', fate: 'later', usesRetry: false },
  stop_waba: { scope: 'waba', fate: 'later', usesRetry: false },
  stop_tenant: { scope: 'tenant', fate: 'later', usesRetry: false },
  unknown: { scope: 'attempt', fate: 'unknown', usesRetry: false },
};

export interface Accepted {
  class: 'accepted';
  providerMessageId: string;
  /** `held`: taken, and kept back by the provider for now; sending again would double it. */
  providerStatus: 'accepted' | 'held';
}

export interface NotAccepted {
  class: Exclude<AnswerClass, 'accepted'>;
  /** Ours, stable. */
  code: MessageErrorCode;
  providerCode: string | null;
  text: string | null;
  /** The least time before another attempt, as the provider said or as is known for its code; 0 where there is none. */
  waitMs: number;
  /** Waits that grow with each repetition of the same trouble (hours for a spam restriction, 4^n seconds for a pair). */
  growing: readonly number[] | null;
  retriesAtMost: number | null;
  /** True where nobody but us can be at fault, or where we don't know the code: somebody should look. */
  alert: boolean;
}

export type ProviderAnswer = Accepted | NotAccepted;

/** Codes of calls that ended by our own decision before anything was written: not the provider's fault, and free to go again at once. */
export const GIVEN_UP: ReadonlySet<string> = new Set(['NOT_PERMITTED', 'NOT_WRITTEN_IN_TIME', 'ALREADY_GIVEN_UP']);
