import { failureOf, send, templateSend } from '../test-support/send-message';
import { WebhookReceiver } from '../test-support/webhook-receiver';
import { MAGIC_RECIPIENTS, magicNumber } from './rules/magic-recipients';
import { startSimulator, type RunningSimulator } from './start-simulator';

let simulator: RunningSimulator;
let receiver: WebhookReceiver;

beforeAll(async () => {
  receiver = await new WebhookReceiver().start();
  simulator = await startSimulator({
    configuration: {
      latency: { kind: 'fixed', ms: 0 },
      ratePerSecond: null,
      webhook: { url: receiver.url, appSecret: 'secret' },
      webhooks: { readShare: 0, batchSize: 1, batchWaitMs: 0, concurrency: 1, delays: { sent: { kind: 'fixed', ms: 5 } } },
    },
  });
});
beforeEach(async () => {
  await simulator.control.reset();
  receiver.webhooks.length = 0;
});
afterAll(async () => {
  await simulator.stop();
  await receiver.stop();
});

/** Only these are given up early: on a busy machine an ordinary answer may take longer than that. */
const HUNG = new Set(['70', '71', '96']);

/** What the caller sees: a status of acceptance, a Graph code, an HTTP status, or the failure of the transport. */
async function answers(digits: string): Promise<string> {
  const number = magicNumber(digits);
  const sending = send(simulator.url, templateSend(number), { headersTimeout: HUNG.has(digits) ? 300 : 30_000 });
  try {
    const { httpStatus, json } = await sending;
    if (json.error) return String(json.error.code);
    return json.messages ? json.messages[0]!.message_status! : `http ${httpStatus}`;
  } catch {
    return failureOf(sending);
  }
}

const ALL = ['sent', 'delivered', 'read'];
const UNREAD = ['sent', 'delivered'];
const failed = (code: number): string[] => [`failed ${code}`];

/** Digits, answers to repeated sends, messages the provider took on, statuses in order of arrival. */
const EXPECTED: [string, string[], number, string[]][] = [
  ['50', ['accepted'], 1, failed(131026)],
  ['51', ['accepted'], 1, failed(131049)],
  ['52', ['accepted'], 1, failed(131050)],
  ['53', ['accepted'], 1, failed(130472)],
  ['54', ['accepted'], 1, failed(131047)],
  ['55', ['accepted'], 1, failed(131053)],
  ['56', ['accepted'], 1, failed(131000)],
  ['57', ['131026'], 0, []],
  ['58', ['131050'], 0, []],
  ['59', ['131047'], 0, []],
  ['60', ['131000', 'accepted', '131000'], 1, UNREAD],
  ['61', ['131000', '131000', '131000'], 0, []],
  ['62', ['131000', '131000', 'accepted', '131000'], 1, UNREAD],
  ['63', ['131016', 'accepted'], 1, UNREAD],
  ['64', ['2', 'accepted'], 1, UNREAD],
  ['65', ['131056', 'accepted'], 1, UNREAD],
  ['66', ['130429', 'accepted'], 1, UNREAD],
  ['67', ['http 429', 'accepted'], 1, UNREAD],
  ['68', ['1'], 1, ALL],
  ['69', ['1'], 0, []],
  ['70', ['UND_ERR_HEADERS_TIMEOUT'], 1, ALL],
  ['71', ['UND_ERR_HEADERS_TIMEOUT'], 0, []],
  ['72', ['UND_ERR_SOCKET'], 1, ALL],
  ['73', ['UND_ERR_SOCKET'], 0, []],
  ['74', ['UND_ERR_SOCKET'], 1, ALL],
  ['75', ['http 502'], 1, ALL],
  ['76', ['http 502'], 0, []],
  ['77', ['http 500'], 0, []],
  ['78', ['ECONNRESET'], 1, []],
  ['79', ['accepted'], 1, UNREAD],
  ['80', ['accepted'], 1, ['sent']],
  ['81', ['accepted'], 1, UNREAD],
  ['82', ['accepted'], 1, ALL],
  ['83', ['accepted'], 1, []],
  ['84', ['accepted'], 1, ['sent', 'read']],
  ['85', ['accepted'], 1, ['sent', 'failed 131026', 'delivered']],
  ['86', ['accepted'], 1, ['sent', 'delivered', 'failed 131026']],
  ['87', ['accepted'], 1, ALL],
  ['88', ['accepted'], 1, ['sent', 'sent', 'sent', 'delivered', 'delivered', 'delivered', 'read', 'read', 'read']],
  ['89', ['accepted'], 1, ['read', 'delivered', 'sent']],
  ['90', ['held_for_quality_assessment'], 1, ALL],
  ['91', ['held_for_quality_assessment'], 1, failed(132015)],
  ['92', ['held_for_quality_assessment'], 1, []],
  ['93', ['paused'], 1, ALL],
  ['94', ['queued_for_review'], 1, ALL],
  ['95', ['accepted'], 1, ['sent', 'delivered', 'delivered']],
  ['96', ['UND_ERR_HEADERS_TIMEOUT'], 1, failed(131026)],
];

it('is specified for every magic recipient', () => {
  expect(EXPECTED.map(([digits]) => digits)).toEqual(MAGIC_RECIPIENTS.map(({ digits }) => digits));
});

it.each(EXPECTED)('+1 202 555 01%s', async (digits, expectedAnswers, delivered, statuses) => {
  const seen: string[] = [];
  while (seen.length < expectedAnswers.length) seen.push(await answers(digits));
  expect(seen).toEqual(expectedAnswers);
  expect((await simulator.control.recipient(magicNumber(digits))).count).toBe(delivered);
  expect(await simulator.control.flushWebhooks()).toBe(true);
  expect(receiver.statuses.map(({ status, errors }) => (errors ? `${status} ${errors[0]!.code}` : status))).toEqual(statuses);
  for (const status of receiver.statuses) {
    expect(status.biz_opaque_callback_data).toBe(`token-${magicNumber(digits)}`);
    expect(status.recipient_id).toBe(magicNumber(digits).slice(1));
  }
});

it('lets a reversed journey tell its true times', async () => {
  await answers('89');
  await simulator.control.flushWebhooks();
  const [read, delivered, sent] = receiver.statuses.map(({ timestamp }) => Number(timestamp));
  expect(sent!).toBeLessThan(delivered!);
  expect(delivered!).toBeLessThan(read!);
});

it('leaves ordinary numbers of the same range alone, and all of them when switched off', async () => {
  expect(await answers('49')).toBe('accepted');
  await simulator.control.configure({ magicRecipients: false });
  expect(await answers('61')).toBe('accepted');
  await simulator.control.configure({ magicRecipients: true });
  expect(await answers('61')).toBe('131000');
});
