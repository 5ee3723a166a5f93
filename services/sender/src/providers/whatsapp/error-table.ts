import type { MessageErrorCode } from '#contracts/words';
import type { AnswerClass } from '../answer';

export interface ErrorRow {
  class: Exclude<AnswerClass, 'accepted' | 'not_sent'>;
  code: MessageErrorCode;
  waitMs?: number;
  growing?: readonly number[];
  /** Retries of this trouble, where fewer than the schedule's make sense. */
  retriesAtMost?: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A pair of number and recipient may talk once in 6 s; after a refusal Meta asks to wait 4^n seconds (4^6 is over an hour). */
const PAIR_WAITS = [0, 1, 2, 3, 4, 5, 6].map((n) => 4 ** n * SECOND);

const credentials: ErrorRow = { class: 'stop_tenant', code: 'credentials_invalid' };
const appLimit: ErrorRow = { class: 'slow_app', code: 'provider_throttled', waitMs: MINUTE };
const request: ErrorRow = { class: 'fail_request', code: 'request_rejected' };
const parameters: ErrorRow = { class: 'template_params', code: 'template_parameters' };
const registration: ErrorRow = { class: 'stop_number', code: 'number_unavailable' };
const blocked: ErrorRow = { class: 'stop_waba', code: 'account_blocked' };

/** Every code that Meta's error page lists for sends, and the Graph API's general ones. */
const ROWS: ReadonlyArray<readonly [codes: readonly number[], row: ErrorRow]> = [
  // Graph API, general. Code 1 is "invalid request or possible server error": nothing says that the message was not sent.
  [[0, 3, 10, 102, 104, 190, 131005], credentials],
  [[1], { class: 'unknown', code: 'outcome_unknown' }],
  [[2], { class: 'retry_checked', code: 'provider_unavailable', waitMs: 5 * MINUTE }],
  [[4, 17, 341, 613], appLimit],
  [[33], registration],
  [[100, 506], request],
  [[368], blocked],
  [[80007], { class: 'slow_waba', code: 'provider_throttled', waitMs: MINUTE }],

  // The recipient.
  [[130403], { class: 'fail_recipient', code: 'recipient_blocked' }],
  [[130472], { class: 'fail_recipient', code: 'experiment_holdout' }],
  [[130497], { class: 'fail_recipient', code: 'country_not_allowed' }],
  [[131021, 131030], { class: 'fail_recipient', code: 'recipient_not_allowed' }],
  [[131026], { class: 'fail_recipient', code: 'recipient_unreachable' }],
  [[131062], { class: 'fail_recipient', code: 'recipient_not_on_channel' }],
  [[131047], { class: 'fail_recipient', code: 'outside_service_window' }],
  [[137000], { class: 'fail_recipient', code: 'recipient_not_allowed' }],
  [[131050], { class: 'suppress_recipient', code: 'recipient_opted_out' }],
  [[131056], { class: 'recipient_later', code: 'recipient_limit_reached', growing: PAIR_WAITS }],
  // A marketing cap of the person across all businesses: another try within a day would only count against us.
  [[131049], { class: 'fail_recipient', code: 'recipient_limit_reached' }],

  // Pace and passing trouble.
  [[130429], { class: 'slow_number', code: 'provider_throttled', waitMs: SECOND }],
  [[131000, 131016, 133004], { class: 'retry_checked', code: 'provider_unavailable' }],
  [[131053], { class: 'retry_checked', code: 'media_unavailable', retriesAtMost: 1 }],

  // The number.
  [[131048], { class: 'pause_number', code: 'account_blocked', growing: [HOUR, 4 * HOUR, 24 * HOUR] }],
  [[131057], { class: 'pause_number', code: 'number_unavailable', waitMs: MINUTE }],
  [[2494100], { class: 'pause_number', code: 'number_unavailable', waitMs: 2 * MINUTE }],
  [[131037, 131045, 133000, 133005, 133006, 133008, 133009, 133010, 133015, 133016], registration],

  // The account.
  [[131031, 131042, 131064], blocked],

  // The template or the campaign.
  [[132000, 132005, 132008, 132012, 132018], parameters],
  [[132001], { class: 'fail_campaign', code: 'template_missing' }],
  [[132007], { class: 'fail_campaign', code: 'content_rejected' }],
  [[132015], { class: 'pause_template', code: 'template_paused' }],
  [[132016], { class: 'fail_campaign', code: 'template_disabled' }],
  [[132068], { class: 'fail_campaign', code: 'template_disabled' }],
  [[132069], { class: 'pause_template', code: 'template_paused', waitMs: HOUR }],
  [[134101], { class: 'pause_template', code: 'template_paused', waitMs: 10 * MINUTE }],
  [[131063, 134011, 134102], { class: 'fail_campaign', code: 'request_rejected' }],

  // Our request.
  [[131008, 131009, 131020, 131041, 131051, 131052, 131055, 131059, 134100, 135000, 1752041], request],
];

const ERROR_TABLE = new Map<number, ErrorRow>(ROWS.flatMap(([codes, row]) => codes.map((code) => [code, row] as const)));

/** Every code that has a row of its own, for the test that walks them all. */
export const KNOWN_CODES: readonly number[] = [...ERROR_TABLE.keys()];

/**
 * Meta asks to go by the code and not by the HTTP status, which has changed over the years for the same code (4 came as 400
 * and as 429). The status decides only about codes that nobody listed.
 */
export function errorRow(code: number, subcode: number | null, httpStatus: number): { row: ErrorRow; listed: boolean } {
  // 100 with subcode 33: the object does not exist or we may not see it, so the number and not the message is at fault.
  if (code === 100 && subcode === 33) return { row: registration, listed: true };
  const row = ERROR_TABLE.get(code);
  if (row) return { row, listed: true };
  if (code >= 200 && code <= 299) return { row: credentials, listed: true };
  if (code >= 131_200 && code <= 131_215) return { row: request, listed: true };
  if (httpStatus >= 500) return { row: { class: 'unknown', code: 'outcome_unknown' }, listed: false };
  return { row: request, listed: false };
}
