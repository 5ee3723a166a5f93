import type { MessageErrorCode } from '#contracts/words';

export interface Advice {
  /** The same message, asked for again later, may go through. */
  retryable: boolean;
  /** What happened, where the provider has no words of its own for it. */
  text: string;
  /** What the customer can do. */
  action: string;
}

const final = (text: string, action: string): Advice => ({ retryable: false, text, action });
const later = (text: string, action: string): Advice => ({ retryable: true, text, action });

const OFF_THE_LIST = 'Take the person off your list.';
const BUSINESS_MANAGER = "Clear it in the provider's business manager, then try again.";

const ADVICE: Record<MessageErrorCode, Advice> = {
  recipient_unreachable: final(
    'The message could not be delivered.',
    'Check the number, or reach the person on another channel.',
  ),
  recipient_not_on_channel: final('The person is not on this channel.', 'Use another channel for this person.'),
  recipient_blocked: final('The provider blocks this person.', OFF_THE_LIST),
  recipient_opted_out: final('The person does not want these messages.', OFF_THE_LIST),
  recipient_not_allowed: final(
    'The account may not write to this person.',
    'Check what the provider allows your account to reach.',
  ),
  recipient_limit_reached: later('The person gets too many messages at present.', 'Try again in a day or two.'),
  outside_service_window: final(
    'The person has not written in the last 24 hours.',
    'Use a template: texts are only for people who wrote in the last 24 hours.',
  ),
  country_not_allowed: final(
    'The account may not write to this country.',
    'Ask the provider to open this country for your account.',
  ),
  experiment_holdout: final('The provider keeps this person out of marketing messages.', 'Nothing to do.'),
  template_missing: final('There is no such approved template.', 'Check name and language of the template, and its approval.'),
  template_parameters: final('The template takes other parameters.', 'Compare the parameters with the approved template.'),
  template_paused: later('The template is paused.', 'Wait until the provider resumes the template, or use another.'),
  template_disabled: final('The template is disabled.', 'Use another template.'),
  content_rejected: final('The content was rejected.', 'Change the content.'),
  media_unavailable: later(
    'The media could not be fetched.',
    'Check that the provider can fetch the link, and its type and size.',
  ),
  request_rejected: final('The request was rejected.', "Look at the provider's own code and text."),
  provider_unavailable: later('The provider was not available.', 'Try again later.'),
  provider_throttled: later('The provider takes no more messages at present.', 'Try again later, or lower ratePerSecond.'),
  account_blocked: later('The account is blocked.', BUSINESS_MANAGER),
  credentials_invalid: later('The credentials are not accepted.', 'Give the number new credentials, then try again.'),
  number_unavailable: later('The sending number can not be used.', BUSINESS_MANAGER),
  not_sent: later('The message was not sent.', 'Try again.'),
  hold_expired: later('The message was held for too long.', 'End what it waited for, then try again.'),
  outcome_unknown: final(
    'Nobody knows whether the message was sent.',
    'Ask the person before you send it again: they may have it.',
  ),
};

export function adviceFor(code: string): Advice {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code as MessageErrorCode] : ADVICE.request_rejected;
}
