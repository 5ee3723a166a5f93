import { waitUntil } from '#runtime/wait-until';
import { send, sendMany, templateSend } from '../../test-support/send-message';
import { WebhookReceiver } from '../../test-support/webhook-receiver';
import type { ConfigurationInput } from '../configuration';
import { startSimulator, type RunningSimulator } from '../start-simulator';
import { signature256 } from './render-webhook';

const SECRET = 'punctual-demo-app-secret';
const NOW = { kind: 'fixed', ms: 0 } as const;
let simulator: RunningSimulator;
let receiver: WebhookReceiver;

beforeEach(async () => {
  receiver = await new WebhookReceiver().start();
});
afterEach(async () => {
  await simulator.stop();
  await receiver.stop();
});

async function start(webhooks: NonNullable<ConfigurationInput['webhooks']>): Promise<void> {
  simulator = await startSimulator({
    configuration: {
      latency: NOW,
      ratePerSecond: null,
      webhook: { url: receiver.url, appSecret: SECRET },
      webhooks: { readShare: 1, delays: { sent: NOW, delivered: NOW, read: NOW, failed: NOW }, ...webhooks },
    },
  });
}

const isSigned = ({ headers, raw }: WebhookReceiver['webhooks'][number]): boolean =>
  headers['x-hub-signature-256'] === signature256(SECRET, raw);

it('tells sent, delivered and read, signed, with token, id and a string of seconds', async () => {
  await start({});
  const answer = await send(simulator.url, templateSend('+12025550143'));
  await waitUntil('three statuses', () => receiver.statuses.length === 3);
  expect(receiver.statusNames()).toEqual(['sent', 'delivered', 'read']);
  expect(receiver.webhooks.every(isSigned)).toBe(true);
  for (const status of receiver.statuses) {
    expect(status).toMatchObject({
      id: answer.json.messages![0]!.id,
      recipient_id: '12025550143',
      biz_opaque_callback_data: 'token-+12025550143',
      timestamp: expect.stringMatching(/^[0-9]{10}$/) as string,
    });
  }
  await waitUntil('acknowledged', async () => (await simulator.control.deliveries())[0]!.acknowledged.length === 3);
});

it('keeps the shares of read and failed', async () => {
  await start({ readShare: 0.5, failShare: 0.25, failCode: 131049 });
  await sendMany(simulator.url, 400);
  await simulator.control.flushWebhooks();
  const names = receiver.statusNames();
  const count = (name: string): number => names.filter((each) => each === name).length;
  expect(count('sent')).toBe(count('delivered'));
  expect(count('sent') + count('failed')).toBe(400);
  expect(count('failed')).toBeGreaterThan(70);
  expect(count('failed')).toBeLessThan(130);
  expect(count('read') / count('sent')).toBeGreaterThan(0.4);
  expect(count('read') / count('sent')).toBeLessThan(0.6);
  const codes = new Set(receiver.statuses.flatMap(({ errors }) => errors ?? []).map(({ code }) => code));
  expect([...codes]).toEqual([131049]);
});

it('fills posts up to the batch size and no further', async () => {
  await start({ batchSize: 1000, batchWaitMs: 60_000, readShare: 0 });
  await simulator.control.pauseWebhooks();
  await sendMany(simulator.url, 600);
  await waitUntil('all statuses wait', async () => (await simulator.control.summary()).webhooks.waiting === 1200);
  expect(receiver.webhooks).toHaveLength(0);
  await simulator.control.resumeWebhooks();
  await simulator.control.flushWebhooks();
  const sizes = receiver.webhooks.map(({ raw }) => raw.split('"status":').length - 1);
  expect(sizes.sort((a, b) => b - a)).toEqual([1000, 200]);
});

it('posts again until the answer is 200, each time rightly signed', async () => {
  await start({ readShare: 0, batchSize: 1, batchWaitMs: 0, concurrency: 1, retryDelaysMs: [0, 5] });
  receiver.answerWith = (post) => (post <= 3 ? [500, 302, 404][post - 1]! : 200);
  await send(simulator.url, templateSend('+12025550143'));
  await waitUntil('both statuses acknowledged', async () => (await simulator.control.deliveries())[0]!.acknowledged.length === 2);
  const { webhooks } = await simulator.control.summary();
  expect(webhooks).toMatchObject({ posts: 5, postsFailed: 3, postsAcknowledged: 2, statusesAcknowledged: 2, waiting: 0 });
  expect(receiver.webhooks.every(isSigned)).toBe(true);
});

it('gives up after the last attempt and says so', async () => {
  await start({ readShare: 0, maxAttempts: 3, retryDelaysMs: [0] });
  receiver.answerWith = () => 500;
  await send(simulator.url, templateSend('+12025550143'));
  await waitUntil('abandoned', async () => (await simulator.control.summary()).webhooks.statusesAbandoned === 2);
  expect((await simulator.control.summary()).webhooks.lastFailure).toBe('HTTP 500');
  expect((await simulator.control.deliveries())[0]!.acknowledged).toEqual([]);
});

it('delivers late to a receiver that was down', async () => {
  await start({ readShare: 0, retryDelaysMs: [5] });
  const { url } = receiver;
  await receiver.stop();
  await send(simulator.url, templateSend('+12025550143'));
  await waitUntil('a failed post', async () => (await simulator.control.summary()).webhooks.postsFailed > 0);
  const revived = await new WebhookReceiver().start(Number(new URL(url).port));
  await waitUntil('both statuses', () => revived.statuses.length === 2);
  await revived.stop();
  await receiver.start();
});

it('holds everything back while paused', async () => {
  await start({});
  await simulator.control.pauseWebhooks();
  await sendMany(simulator.url, 5);
  await waitUntil('all wait', async () => (await simulator.control.summary()).webhooks.waiting === 15);
  expect(receiver.webhooks).toHaveLength(0);
  await simulator.control.resumeWebhooks();
  await waitUntil('all arrive', () => receiver.statuses.length === 15);
});

it('lets every journey end at once on flush', async () => {
  const anHour = { kind: 'fixed', ms: 3_600_000 } as const;
  await start({ delays: { sent: anHour, delivered: anHour, read: anHour } });
  await sendMany(simulator.url, 3);
  expect(receiver.webhooks).toHaveLength(0);
  expect(await simulator.control.flushWebhooks(60_000)).toBe(true);
  expect(receiver.statuses).toHaveLength(9);
});

it('says when a flush did not reach the receiver in time', async () => {
  await start({ retryDelaysMs: [60_000] });
  receiver.answerWith = () => 500;
  await sendMany(simulator.url, 1);
  expect(await simulator.control.flushWebhooks(50)).toBe(false);
});

it('posts some statuses twice', async () => {
  await start({ readShare: 0, duplicateShare: 1, reorderDelay: { kind: 'fixed', ms: 1 } });
  await sendMany(simulator.url, 4);
  await simulator.control.flushWebhooks();
  const keys = receiver.statuses.map(({ id, status }) => `${id} ${status}`);
  expect(keys).toHaveLength(16);
  expect(new Set(keys).size).toBe(8);
});

it('lets later statuses overtake earlier ones', async () => {
  const behaviour = { readShare: 1, batchSize: 1, batchWaitMs: 0, concurrency: 1 };
  const overtakes = (): boolean => {
    const seen = new Map<string, string[]>();
    for (const { id, status } of receiver.statuses) seen.set(id, [...(seen.get(id) ?? []), status]);
    return [...seen.values()].some((order) => order.join() !== 'sent,delivered,read');
  };
  await start(behaviour);
  await sendMany(simulator.url, 20);
  await waitUntil('all', () => receiver.statuses.length === 60);
  expect(overtakes()).toBe(false);
  receiver.webhooks.length = 0;
  await simulator.control.configure({ webhooks: { reorderShare: 0.5, reorderDelay: { kind: 'uniform', minMs: 20, maxMs: 60 } } });
  await sendMany(simulator.url, 20);
  await waitUntil('all', () => receiver.statuses.length === 60);
  expect(overtakes()).toBe(true);
});

it('posts the first status before it answers when told to', async () => {
  await start({ webhookFirstShare: 1, delays: { sent: { kind: 'fixed', ms: 3_600_000 } } });
  await send(simulator.url, templateSend('+12025550143'));
  expect(receiver.statusNames()[0]).toBe('sent');
});

it('signs wrongly on demand, and rightly when it posts again', async () => {
  await start({ readShare: 0, batchSize: 1, batchWaitMs: 0, concurrency: 1, retryDelaysMs: [0] });
  receiver.answerWith = (post) => (isSigned(receiver.webhooks[post - 1]!) ? 200 : 401);
  await send(simulator.url, templateSend('+12025550143'));
  await simulator.control.flushWebhooks();
  await simulator.control.sendBadSignatures(1);
  await send(simulator.url, templateSend('+12025550144'));
  await simulator.control.flushWebhooks();
  expect(receiver.webhooks.filter((webhook) => !isSigned(webhook))).toHaveLength(1);
  expect((await simulator.control.deliveries()).map(({ acknowledged }) => acknowledged.length)).toEqual([2, 2]);
  await simulator.control.configure({ webhooks: { badSignatureShare: 1, maxAttempts: 1 } });
  await send(simulator.url, templateSend('+12025550145'));
  await simulator.control.flushWebhooks();
  expect((await simulator.control.deliveries())[2]!.acknowledged).toEqual([]);
});

it('names contacts when asked, never with failed, and escapes their names', async () => {
  await start({ contacts: true, profileName: 'Zoë' });
  await send(simulator.url, templateSend('+12025550143'));
  await simulator.control.flushWebhooks();
  expect(receiver.webhooks.map(({ raw }) => raw).join()).toContain(
    '"contacts":[{"profile":{"name":"Zo\\u00eb"},"wa_id":"12025550143"}',
  );
  receiver.webhooks.length = 0;
  await send(simulator.url, templateSend('+12025550150'));
  await simulator.control.flushWebhooks();
  expect(receiver.statusNames()).toEqual(['failed']);
  expect(receiver.webhooks[0]!.raw).not.toContain('contacts');
  expect(receiver.webhooks.every(isSigned)).toBe(true);
});

describe('a subscription', () => {
  const configure = (verifyToken: string): Promise<unknown> =>
    simulator.control.configure({
      webhook: { url: receiver.url, appSecret: 'another secret', verifyToken },
      strictNumbers: true,
    });

  it('is taken when the endpoint echoes the challenge', async () => {
    await start({});
    await configure('verify-me');
    expect(receiver.challenges).toHaveLength(1);
    expect((await simulator.control.configuration()).settings.webhook).toMatchObject({ appSecret: 'another secret' });
  });

  it('is refused when it does not, and nothing changes', async () => {
    await start({});
    await expect(configure('wrong')).rejects.toThrow(/webhook_verification_failed.*HTTP 403/);
    expect((await simulator.control.configuration()).settings).toMatchObject({
      webhook: { appSecret: SECRET },
      strictNumbers: false,
    });
  });

  it('can be a number’s own, or none', async () => {
    await start({});
    const own = await new WebhookReceiver().start();
    await simulator.control.configure({
      numbers: [
        { phoneNumberId: '701', webhook: { url: own.url, appSecret: 'own' } },
        { phoneNumberId: '702', webhook: null },
      ],
    });
    for (const phoneNumberId of ['700', '701', '702']) await send(simulator.url, templateSend('+12025550143'), { phoneNumberId });
    await simulator.control.flushWebhooks();
    expect([receiver.statuses.length, own.statuses.length]).toEqual([3, 3]);
    expect(own.webhooks.every(({ headers, raw }) => headers['x-hub-signature-256'] === signature256('own', raw))).toBe(true);
    await own.stop();
  });
});
