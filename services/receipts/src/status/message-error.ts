import type { MessageErrorCode } from '#contracts/words';

interface ErrorFacts {
  /** Whether the same message, asked for again later, may go through. */
  retryable: boolean;
  /** Shown where the provider gave no text. */
  text: string;
}

const ERRORS: Record<MessageErrorCode, ErrorFacts> = {
  recipient_unreachable: { retryable: false, text: 'The provider could not deliver to this number.' },
  recipient_not_on_channel: { retryable: false, text: 'This recipient can not be reached on this channel.' },
  recipient_blocked: { retryable: false, text: 'This recipient is blocked.' },
  recipient_opted_out: { retryable: false, text: 'The recipient does not want these messages any more.' },
  recipient_not_allowed: { retryable: false, text: 'The provider does not allow messages to this recipient.' },
  recipient_limit_reached: { retryable: true, text: 'The recipient has had as many messages as the provider allows for now.' },
  outside_service_window: {
    retryable: false,
    text: 'Free text is allowed only for a day after the recipient has written; use a template.',
  },
  country_not_allowed: { retryable: false, text: 'The account may not send to this country.' },
  experiment_holdout: {
    retryable: false,
    text: 'The provider keeps this recipient out of marketing messages for an experiment.',
  },
  template_missing: { retryable: false, text: 'The template does not exist in this language, or is not approved.' },
  template_parameters: { retryable: false, text: 'The parameters do not fit the template.' },
  template_paused: { retryable: true, text: 'The provider has paused the template.' },
  template_disabled: { retryable: false, text: 'The provider has disabled the template.' },
  content_rejected: { retryable: false, text: 'The provider has rejected the content.' },
  media_unavailable: { retryable: true, text: 'The provider could not fetch the media.' },
  request_rejected: { retryable: false, text: 'The provider has rejected the request.' },
  provider_unavailable: { retryable: true, text: 'The provider had a fault.' },
  provider_throttled: { retryable: true, text: 'The provider takes no more messages for now.' },
  account_blocked: { retryable: true, text: 'The provider has blocked the account; it must be cleared there.' },
  credentials_invalid: { retryable: true, text: "The provider does not accept the number's credentials." },
  number_unavailable: { retryable: true, text: 'The sending number can not be used at the provider.' },
  not_sent: { retryable: true, text: 'The message was not sent.' },
  hold_expired: { retryable: true, text: 'What the message waited for did not end in time.' },
  outcome_unknown: { retryable: false, text: 'The provider did not say whether it has the message.' },
};

function factsOf(code: string): ErrorFacts {
  return ERRORS[code as MessageErrorCode] ?? ERRORS.request_rejected;
}

export function isRetryableByCustomer(code: string): boolean {
  return factsOf(code).retryable;
}

export function textOfError(code: string): string {
  return factsOf(code).text;
}
