import type { MessageErrorCode } from '#contracts/words';

interface Advice {
  /** The same message, asked for again later, may go through. */
  retryable: boolean;
  /** What the customer can do. */
  action: string;
}

/** What a customer is told beside the provider's own words. */
const ADVICE: Record<MessageErrorCode, Advice> = {
  recipient_unreachable: { retryable: false, action: 'Check the number, or reach the person on another channel.' },
  recipient_not_on_channel: { retryable: false, action: 'Use another channel for this person.' },
  recipient_blocked: { retryable: false, action: 'Take the person off your list.' },
  recipient_opted_out: { retryable: false, action: 'Take the person off your list.' },
  recipient_not_allowed: { retryable: false, action: 'Check what the provider allows your account to reach.' },
  recipient_limit_reached: { retryable: true, action: 'Try again in a day or two; the person gets many messages.' },
  outside_service_window: { retryable: false, action: 'Use a template: texts need a message from the person in the last 24 hours.' },
  country_not_allowed: { retryable: false, action: 'Ask the provider to open this country for your account.' },
  experiment_holdout: { retryable: false, action: 'Nothing to do: the provider keeps this person out of marketing messages.' },
  template_missing: { retryable: false, action: 'Check name and language of the template, and that it is approved.' },
  template_parameters: { retryable: false, action: 'Compare the parameters with the approved template.' },
  template_paused: { retryable: true, action: 'Wait until the provider resumes the template, or use another.' },
  template_disabled: { retryable: false, action: 'Use another template.' },
  content_rejected: { retryable: false, action: 'Change the content.' },
  media_unavailable: { retryable: true, action: 'Check that the provider can fetch the link, and its type and size.' },
  request_rejected: { retryable: false, action: "Look at the provider's own code and text." },
  provider_unavailable: { retryable: true, action: 'Try again later.' },
  provider_throttled: { retryable: true, action: 'Try again later, or lower ratePerSecond.' },
  account_blocked: { retryable: true, action: "Clear it in the provider's business manager, then try again." },
  credentials_invalid: { retryable: true, action: 'Give the number new credentials, then try again.' },
  number_unavailable: { retryable: true, action: "Check the number in the provider's business manager." },
  not_sent: { retryable: true, action: 'Try again.' },
  hold_expired: { retryable: true, action: 'End what it waited for, then try again.' },
  outcome_unknown: { retryable: false, action: 'Ask the person before you send it again: they may have it.' },
};

const UNKNOWN: Advice = { retryable: false, action: "Look at the provider's own code and text." };

export function adviceFor(code: string): Advice {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code as MessageErrorCode] : UNKNOWN;
}
