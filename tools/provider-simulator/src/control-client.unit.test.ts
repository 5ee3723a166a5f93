import { request } from 'undici';
import { sample } from '../test-support/samples';
import { failureOf, send, sendMany, templateSend } from '../test-support/send-message';
import { WebhookReceiver } from '../test-support/webhook-receiver';
import { ordinaryRecipient } from './ordinary-recipients';
import { startSimulator, type RunningSimulator } from './start-simulator';
import { signature256 } from './webhooks/render-webhook';

const SECRET = 'secret';
let simulator: RunningSimulator;
let receiver: WebhookReceiver;

beforeEach(async () => {
  receiver = await new WebhookReceiver().start();
  simulator = await startSimulator({
    bounds: { requests: 3, recipients: 50 },
    configuration: {
      latency: { kind: 'fixed', ms: 0 },
      ratePerSecond: null,
      webhook: { url: receiver.url, appSecret: SECRET },
      webhooks: { readShare: 0 },
    },
  });
});
afterEach(async () => {
  await simulator.stop();
  await receiver.stop();
});

describe('the oracle', () => {
  it('counts what went out, whatever callers were told', async () => {
    await send(simulator.url, templateSend('+12025550143', { biz_opaque_callback_data: 'twice' }));
    await send(simulator.url, templateSend('+12025550143', { biz_opaque_callback_data: 'twice' }));
    await failureOf(send(simulator.url, templateSend('+12025550172')));
    await failureOf(send(simulator.url, templateSend('+12025550173')));
    await send(simulator.url, templateSend('+12025550175'));
    await send(simulator.url, templateSend('+12025550176'));
    await send(simulator.url, templateSend('+12025550161', { biz_opaque_callback_data: undefined }));
    await send(simulator.url, templateSend('+12025550144', { biz_opaque_callback_data: undefined }));
    const summary = await simulator.control.summary();
    expect(summary).toMatchObject({
      received: 8,
      accepted: 3,
      rejected: { dropped: 2, http_502: 2, 131000: 1 },
      deliveries: 5,
      deliveriesByAnswer: { accepted: 3, dropped: 1, http_error: 1 },
      deliveriesWithoutToken: 1,
      recipients: { distinct: 4, histogram: { 1: 3, 2: 1 }, most: 2, repeated: ['12025550143'], uncounted: 0 },
      tokens: { distinct: 3, histogram: { 1: 2, 2: 1 }, most: 2, repeated: ['twice'] },
    });
    expect((await simulator.control.recipient('+12025550143')).deliveries).toHaveLength(2);
    expect(await simulator.control.token('twice')).toMatchObject({
      count: 2,
      deliveries: [{ token: 'twice' }, { token: 'twice' }],
    });
    expect(await simulator.control.recipient('12025550173')).toEqual({ recipient: '12025550173', count: 0, deliveries: [] });
  });

  it('lists deliveries by number, time and sequence', async () => {
    for (const [index, phoneNumberId] of ['701', '702', '701', '702'].entries()) {
      await send(simulator.url, templateSend(ordinaryRecipient(index)), { phoneNumberId });
    }
    const all = await simulator.control.deliveries();
    expect(all.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3]);
    expect(all[0]).toMatchObject({
      phoneNumberId: '701',
      recipient: ordinaryRecipient(0).slice(1),
      token: `token-${ordinaryRecipient(0)}`,
      content: 'autumn_offer/en_US',
      answer: 'accepted',
      at: expect.stringMatching(/^[0-9-]{10}T[0-9:]{8}\.[0-9]{6}Z$/) as string,
    });
    const sequences = async (filter: Parameters<typeof simulator.control.deliveries>[0]): Promise<number[]> =>
      (await simulator.control.deliveries(filter)).map(({ sequence }) => sequence);
    expect(await sequences({ phoneNumberId: '702' })).toEqual([1, 3]);
    expect(await sequences({ since: all[2]!.at })).toEqual([2, 3]);
    expect(await sequences({ since: all[1]!.wallMicros / 1000 })).toEqual([1, 2, 3]);
    expect(await sequences({ afterSequence: 1, limit: 1 })).toEqual([2]);
    expect(await sequences({ recipient: ordinaryRecipient(3) })).toEqual([3]);
    expect(await sequences({ token: 'nobody' })).toEqual([]);
    await expect(simulator.control.deliveries({ since: 'yesterday' })).rejects.toThrow(/since/);
  });

  it('streams more than a turn’s worth', async () => {
    await sendMany(simulator.url, 4500);
    const streamed: number[] = [];
    for await (const { sequence } of simulator.control.streamDeliveries()) streamed.push(sequence);
    expect(streamed).toEqual(Array.from({ length: 4500 }, (_, sequence) => sequence));
  });

  it('says when a bound hides part of the truth', async () => {
    for (let index = 0; index < 60; index += 1) await send(simulator.url, templateSend(ordinaryRecipient(index)));
    expect((await simulator.control.summary()).recipients).toMatchObject({ distinct: 50, uncounted: 10 });
  });

  it('keeps the newest requests as they came in', async () => {
    for (let index = 0; index < 8; index += 1) await send(simulator.url, templateSend(ordinaryRecipient(index)));
    await send(simulator.url, 'no json');
    const requests = await simulator.control.requests();
    expect(requests.map(({ answer }) => answer)).toEqual(['accepted', 'accepted', '100']);
    expect(requests[1]!.body).toEqual(templateSend(ordinaryRecipient(7)));
    expect(requests[2]!.body).toBe('no json');
  });
});

it('forgets on reset what happened, keeps what was configured, and never repeats an id', async () => {
  await simulator.control.addRule({ id: 'kept', action: { kind: 'delay', ms: 1 } });
  const before = await send(simulator.url, templateSend('+12025550143'));
  await simulator.control.reset({ keepRules: true });
  expect(await simulator.control.summary()).toMatchObject({
    received: 0,
    deliveries: 0,
    webhooks: { travelling: 0, statusesEmitted: { sent: 0 } },
  });
  expect(await simulator.control.rules()).toMatchObject([{ id: 'kept' }]);
  const after = await send(simulator.url, templateSend('+12025550143'));
  expect(after.json.messages![0]!.id).not.toBe(before.json.messages![0]!.id);
  await simulator.control.flushWebhooks();
  expect(receiver.statuses.every(({ id }) => id === after.json.messages![0]!.id)).toBe(true);
  await simulator.control.reset();
  expect(await simulator.control.rules()).toEqual([]);
  expect((await simulator.control.configuration()).settings.webhook).not.toBeNull();
});

it('posts any webhook, signed well, wrongly or not', async () => {
  const body = sample<Record<string, unknown>>('wa-webhook-inbound-stop-text');
  receiver.answerWith = (post) => (post === 1 ? 200 : 401);
  expect(await simulator.control.sendWebhook({ body })).toEqual({ httpStatus: 200, body: '' });
  expect((await simulator.control.sendWebhook({ body, signature: 'wrong' })).httpStatus).toBe(401);
  await simulator.control.sendWebhook({ body: 'as it is', signature: 'none', headers: { 'x-own': 'yes' } });
  await simulator.control.sendWebhook({ body: { name: 'Zoë' }, appSecret: 'other' });
  const [good, wrong, none, escaped] = receiver.webhooks;
  expect(JSON.parse(good!.raw)).toEqual(body);
  expect(good!.headers['x-hub-signature-256']).toBe(signature256(SECRET, good!.raw));
  expect(wrong!.headers['x-hub-signature-256']).not.toBe(signature256(SECRET, wrong!.raw));
  expect(none!.headers).not.toHaveProperty('x-hub-signature-256');
  expect([none!.raw, none!.headers['x-own']]).toEqual(['as it is', 'yes']);
  expect(escaped!.raw).toBe('{"name":"Zo\\u00eb"}');
  expect(escaped!.headers['x-hub-signature-256']).toBe(signature256('other', escaped!.raw));
});

it('posts one more status for an earlier delivery', async () => {
  const sent = await send(simulator.url, templateSend('+12025550183'));
  const id = sent.json.messages![0]!.id;
  await simulator.control.sendStatus({
    token: 'token-+12025550183',
    status: 'failed',
    code: 131049,
    timestampShiftSeconds: -86_400,
  });
  await simulator.control.sendStatus({ messageId: id, status: 'delivered' });
  await simulator.control.sendStatus({ recipient: '+12025550183', status: 'read' });
  await simulator.control.flushWebhooks();
  expect(receiver.statuses.map((status) => [status.id, status.status, status.errors?.[0]?.code])).toEqual([
    [id, 'failed', 131049],
    [id, 'delivered', undefined],
    [id, 'read', undefined],
  ]);
  const [failed, delivered] = receiver.statuses;
  expect(Number(delivered!.timestamp) - Number(failed!.timestamp)).toBeGreaterThanOrEqual(86_399);
  await expect(simulator.control.sendStatus({ token: 'unknown', status: 'read' })).rejects.toThrow(/unknown_delivery/);
});

it('names every member at fault and changes nothing', async () => {
  const wrong = simulator.control.configure({
    strictNumbers: true,
    latency: { kind: 'fixed', ms: -1 },
    numbers: [{ phoneNumberId: 'abc' }],
  });
  await expect(wrong).rejects.toThrow(/latency\.ms.*numbers\.0\.phoneNumberId/);
  expect((await simulator.control.configuration()).settings.strictNumbers).toBe(false);
  await expect(simulator.control.removeRule('nobody')).rejects.toThrow(/unknown_rule/);
});

it('lists magic recipients, tells health, and says where nothing is', async () => {
  const get = async (path: string): Promise<[number, unknown]> => {
    const answer = await request(simulator.url + path);
    return [answer.statusCode, await answer.body.json()];
  };
  expect(await get('/control/health')).toEqual([200, { status: 'ok' }]);
  const [, magic] = await get('/control/magic-recipients');
  expect(magic).toContainEqual({ digits: '61', example: '+12025550161', what: '131000 always' });
  expect((await get('/control/nothing'))[0]).toBe(404);
  expect(await simulator.control.isReady()).toBe(true);
});
