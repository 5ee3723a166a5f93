/** Closed lists that several services share; each word is the API's value, the metric label and the log field. */

/** Why a message waits: also the waits of a delay and the reasons of a gate's hold. */
export const WAIT_REASONS = [
  'admission',
  'pace',
  'pair_limit',
  'recipient_budget',
  'window',
  'quota',
  'paused',
  'account',
  'template',
  'content',
  'circuit',
  'retry',
  'provider',
] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** What a message's status can be; see docs/language.md for what each one says to a customer. */
export const MESSAGE_STATUSES = [
  'scheduled',
  'waiting',
  'sending',
  'submitted',
  'sent',
  'delivered',
  'read',
  'uncertain',
  'unconfirmed',
  'failed',
  'refused',
  'cancelled',
  'expired',
] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

export const CLAIM_STATES = [
  'sending',
  'accepted',
  'failed',
  'retry_wait',
  'uncertain',
  'unconfirmed',
  'refused',
  'cancelled',
  'expired',
] as const;
export type ClaimState = (typeof CLAIM_STATES)[number];

/** Why a message was never sent. */
export const REFUSAL_REASONS = [
  'cancelled',
  'expired',
  'suppressed',
  'internal',
  'recipient_missing',
  'content_missing',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** `error.code` of a message: ours, stable, whatever the provider's code. */
export const MESSAGE_ERRORS = [
  'recipient_unreachable',
  'recipient_not_on_channel',
  'recipient_blocked',
  'recipient_opted_out',
  'recipient_not_allowed',
  'recipient_limit_reached',
  'outside_service_window',
  'country_not_allowed',
  'experiment_holdout',
  'template_missing',
  'template_parameters',
  'template_paused',
  'template_disabled',
  'content_rejected',
  'media_unavailable',
  'request_rejected',
  'provider_unavailable',
  'provider_throttled',
  'account_blocked',
  'credentials_invalid',
  'number_unavailable',
  'not_sent',
  'hold_expired',
  'outcome_unknown',
] as const;
export type MessageErrorCode = (typeof MESSAGE_ERRORS)[number];
