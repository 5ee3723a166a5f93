import type { Action, JourneyStep } from './actions';

/**
 * Recipients whose number says what happens to them: any US number of the range kept for fiction, +1 AAA 555 01xx, whose
 * last two digits are 50 or more. The range passes number validation (libphonenumber's full metadata: 381 area codes), which
 * the British and French ranges for fiction do not. 00 to 49 are ordinary.
 */
export interface MagicRecipient {
  digits: string;
  what: string;
  actions: readonly Action[];
  /** Acts on this many requests to the number, then lets one through, then begins again. */
  failuresBeforeSuccess?: number;
}

const graphError = (code: number, more: Partial<Extract<Action, { kind: 'graph_error' }>> = {}): Action => ({
  kind: 'graph_error',
  code,
  delivered: false,
  ...more,
});
const journey = (steps: JourneyStep[], copies = 1): Action => ({ kind: 'journey', steps, copies });
const failedBy = (code: number): Action => journey([{ status: 'failed', after: 'failed', code }]);
const SENT: JourneyStep = { status: 'sent', after: 'sent' };
const DELIVERED: JourneyStep = { status: 'delivered', after: 'delivered' };
const READ: JourneyStep = { status: 'read', after: 'read' };
const ALL = [SENT, DELIVERED, READ];

export const MAGIC_RECIPIENTS: readonly MagicRecipient[] = [
  // Accepted, then failed by webhook.
  { digits: '50', what: 'accepted, then failed by webhook: 131026 undeliverable', actions: [failedBy(131026)] },
  { digits: '51', what: 'accepted, then failed by webhook: 131049 marketing cap', actions: [failedBy(131049)] },
  { digits: '52', what: 'accepted, then failed by webhook: 131050 opted out of marketing', actions: [failedBy(131050)] },
  { digits: '53', what: 'accepted, then failed by webhook: 130472 experiment', actions: [failedBy(130472)] },
  { digits: '54', what: 'accepted, then failed by webhook: 131047 outside the service window', actions: [failedBy(131047)] },
  { digits: '55', what: 'accepted, then failed by webhook: 131053 media', actions: [failedBy(131053)] },
  { digits: '56', what: 'accepted, then failed by webhook: 131000', actions: [failedBy(131000)] },
  // Refused at once.
  { digits: '57', what: 'refused at once: 131026 undeliverable', actions: [graphError(131026)] },
  { digits: '58', what: 'refused at once: 131050 opted out of marketing', actions: [graphError(131050)] },
  { digits: '59', what: 'refused at once: 131047 outside the service window', actions: [graphError(131047)] },
  { digits: '60', what: '131000 once, then fine', actions: [graphError(131000)], failuresBeforeSuccess: 1 },
  { digits: '61', what: '131000 always', actions: [graphError(131000)] },
  { digits: '62', what: '131000 twice, then fine', actions: [graphError(131000)], failuresBeforeSuccess: 2 },
  { digits: '63', what: '131016 once, then fine', actions: [graphError(131016)], failuresBeforeSuccess: 1 },
  { digits: '64', what: '2 (service down, HTTP 503) once, then fine', actions: [graphError(2)], failuresBeforeSuccess: 1 },
  { digits: '65', what: '131056 pair limit once, then fine', actions: [graphError(131056)], failuresBeforeSuccess: 1 },
  { digits: '66', what: '130429 throughput once, then fine', actions: [graphError(130429)], failuresBeforeSuccess: 1 },
  {
    digits: '67',
    what: 'HTTP 429 without a body, Retry-After 1, once, then fine',
    actions: [{ kind: 'http_error', httpStatus: 429, body: 'empty', delivered: false, retryAfter: 1 }],
    failuresBeforeSuccess: 1,
  },
  {
    digits: '68',
    what: '1 (unknown error) although it was delivered',
    actions: [graphError(1, { delivered: true }), journey(ALL)],
  },
  { digits: '69', what: '1 (unknown error), not delivered', actions: [graphError(1)] },
  // No usable answer.
  {
    digits: '70',
    what: 'no answer until the caller gives up; delivered',
    actions: [journey(ALL), { kind: 'hang', delivered: true }],
  },
  { digits: '71', what: 'no answer until the caller gives up; not delivered', actions: [{ kind: 'hang', delivered: false }] },
  {
    digits: '72',
    what: 'connection closed without an answer; delivered',
    actions: [journey(ALL), { kind: 'drop_connection', delivered: true, how: 'close' }],
  },
  {
    digits: '73',
    what: 'connection closed without an answer; not delivered',
    actions: [{ kind: 'drop_connection', delivered: false, how: 'close' }],
  },
  {
    digits: '74',
    what: 'HTTP 200 cut off in the middle; delivered',
    actions: [journey(ALL), { kind: 'truncate', delivered: true }],
  },
  {
    digits: '75',
    what: 'HTTP 502 with a page of HTML; delivered',
    actions: [journey(ALL), { kind: 'http_error', httpStatus: 502, body: 'html', delivered: true }],
  },
  {
    digits: '76',
    what: 'HTTP 502 with a page of HTML; not delivered',
    actions: [{ kind: 'http_error', httpStatus: 502, body: 'html', delivered: false }],
  },
  {
    digits: '77',
    what: 'HTTP 500 without a body; not delivered',
    actions: [{ kind: 'http_error', httpStatus: 500, body: 'empty', delivered: false }],
  },
  {
    digits: '78',
    what: 'connection reset; delivered, and no webhook ever tells',
    actions: [journey([]), { kind: 'drop_connection', delivered: true, how: 'reset' }],
  },
  { digits: '79', what: 'answered 3 seconds late', actions: [{ kind: 'delay', ms: 3000 }] },
  // Accepted, and the statuses are odd.
  { digits: '80', what: 'sent, never delivered (as when the person blocked the sender)', actions: [journey([SENT])] },
  { digits: '81', what: 'sent and delivered, never read', actions: [journey([SENT, DELIVERED])] },
  { digits: '82', what: 'sent, delivered and read', actions: [journey(ALL)] },
  { digits: '83', what: 'accepted, no webhook at all', actions: [journey([])] },
  { digits: '84', what: 'read without delivered', actions: [journey([SENT, READ])] },
  {
    digits: '85',
    what: 'failed 131026 and then delivered',
    actions: [journey([SENT, { status: 'failed', after: 'failed', code: 131026 }, DELIVERED])],
  },
  {
    digits: '86',
    what: 'delivered and then failed 131026',
    actions: [journey([SENT, DELIVERED, { status: 'failed', after: 'failed', code: 131026 }])],
  },
  { digits: '87', what: 'the sent webhook arrives before the answer', actions: [journey(ALL), { kind: 'webhook_first' }] },
  { digits: '88', what: 'every webhook three times', actions: [journey(ALL, 3)] },
  {
    digits: '89',
    what: 'webhooks in reverse: read, delivered, sent',
    actions: [
      journey([
        { status: 'read', after: 'sent' },
        { status: 'delivered', after: 100, timestampShiftSeconds: -1 },
        { status: 'sent', after: 100, timestampShiftSeconds: -2 },
      ]),
    ],
  },
  {
    digits: '90',
    what: 'held for quality assessment, then released',
    actions: [journey(ALL), { kind: 'hold', messageStatus: 'held_for_quality_assessment', then: 'release' }],
  },
  {
    digits: '91',
    what: 'held for quality assessment, then dropped by webhook: 132015',
    actions: [{ kind: 'hold', messageStatus: 'held_for_quality_assessment', then: 'drop' }],
  },
  {
    digits: '92',
    what: 'held for quality assessment for good',
    actions: [{ kind: 'hold', messageStatus: 'held_for_quality_assessment', then: 'nothing' }],
  },
  {
    digits: '93',
    what: 'message_status `paused`, then released',
    actions: [journey(ALL), { kind: 'hold', messageStatus: 'paused', then: 'release' }],
  },
  {
    digits: '94',
    what: 'a message_status that nobody knows, then all statuses',
    actions: [journey(ALL), { kind: 'hold', messageStatus: 'queued_for_review', then: 'release' }],
  },
  {
    digits: '95',
    what: 'delivered twice, two seconds apart (two devices)',
    actions: [journey([SENT, DELIVERED, { status: 'delivered', after: 500, timestampShiftSeconds: 2 }])],
  },
  {
    digits: '96',
    what: 'no answer until the caller gives up; delivered, then failed by webhook: 131026',
    actions: [failedBy(131026), { kind: 'hang', delivered: true }],
  },
];

const BY_DIGITS = new Map(MAGIC_RECIPIENTS.map((magic) => [magic.digits, magic]));
const FICTION = /^1[2-9][0-9]{2}55501([5-9][0-9])$/;

/** `recipient` is digits without plus. */
export function magicRecipient(recipient: string): MagicRecipient | undefined {
  const match = FICTION.exec(recipient);
  return match ? BY_DIGITS.get(match[1]!) : undefined;
}

/** The number with this behaviour under an area code, ready to send to: `magicNumber('60')` is +12025550160. */
export function magicNumber(digits: string, areaCode = 202): string {
  return `+1${areaCode}55501${digits}`;
}
