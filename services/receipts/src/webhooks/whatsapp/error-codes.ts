import type { MessageErrorCode } from '#contracts/words';

/**
 * What Meta's codes mean when they come by webhook, after the message was accepted: by then nothing is retried and nothing
 * paused by them here, they only say why a message failed. Meta's error page lists the codes.
 */
const CODES: ReadonlyArray<readonly [codes: readonly number[], meaning: MessageErrorCode]> = [
  [[131026], 'recipient_unreachable'],
  [[131062], 'recipient_not_on_channel'],
  [[130403], 'recipient_blocked'],
  [[131050], 'recipient_opted_out'],
  [[131021, 131030, 137000], 'recipient_not_allowed'],
  // The person's cap over all businesses, and the pair of number and recipient.
  [[131049, 131056], 'recipient_limit_reached'],
  [[131047], 'outside_service_window'],
  [[130497], 'country_not_allowed'],
  [[130472], 'experiment_holdout'],
  [[132001], 'template_missing'],
  [[132000, 132005, 132008, 132012, 132018], 'template_parameters'],
  // Also how a message that Meta held for quality is dropped.
  [[132015, 132069, 134101], 'template_paused'],
  [[132016, 132068], 'template_disabled'],
  [[132007], 'content_rejected'],
  [[131052, 131053], 'media_unavailable'],
  [[1, 2, 131000, 131016, 133004], 'provider_unavailable'],
  [[4, 17, 341, 613, 80007, 130429], 'provider_throttled'],
  [[368, 131031, 131042, 131048, 131064], 'account_blocked'],
  [[0, 3, 10, 102, 104, 190, 131005], 'credentials_invalid'],
  [[33, 131037, 131045, 131057, 133000, 133005, 133006, 133008, 133009, 133010, 133015, 133016, 2494100], 'number_unavailable'],
];

const MEANINGS = new Map(CODES.flatMap(([codes, meaning]) => codes.map((code) => [code, meaning] as const)));

/** Our code for Meta's; what Meta adds without telling us is a rejected request until somebody gives it a row. */
export function meaningOfCode(providerCode: string): MessageErrorCode {
  const code = Number(providerCode);
  const meaning = MEANINGS.get(code);
  if (meaning) return meaning;
  return code >= 200 && code <= 299 ? 'credentials_invalid' : 'request_rejected';
}
