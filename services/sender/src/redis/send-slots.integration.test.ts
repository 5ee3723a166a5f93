import { Redis } from 'ioredis';
import { waitUntil } from '#runtime/wait-until';
import { serverAddress, uniquePrefix } from '../../../../test-support/isolation';
import { SlotsUnavailableError, openSendSlots, type SendSlots } from './send-slots';

const url = serverAddress('REDIS_URL');
const open: SendSlots[] = [];
let redis: Redis;

async function senderOf(prefix: string, restartPauseMs = 0): Promise<SendSlots> {
  const slots = openSendSlots({ url, prefix, restartPauseMs });
  open.push(slots);
  await waitUntil('the slots are available', () => slots.available);
  return slots;
}

beforeAll(() => {
  redis = new Redis(url);
});
afterAll(async () => {
  await Promise.all(open.map((slots) => slots.close()));
  redis.disconnect();
});

describe('reserving send slots', () => {
  it('gives one number slots that never overlap, whoever asks', async () => {
    const prefix = uniquePrefix();
    const senders = await Promise.all([senderOf(prefix), senderOf(prefix), senderOf(prefix)]);
    const began = performance.now();
    const asks = Array.from({ length: 30 }, async (_, i) => {
      const [answer] = await senders[i % 3]!.reserve([{ number: 'whatsapp_cloud:1', wanted: 5, stepMs: 2 }], 1_000);
      return { ...answer!, arrivedMs: performance.now() - began };
    });
    const answers = await Promise.all(asks);
    expect(answers.every(({ count }) => count === 5)).toBe(true);
    const ends = answers.map(({ offsetMs, arrivedMs }) => offsetMs + arrivedMs).sort((a, b) => a - b);
    // 150 slots of 2 ms: the last booking begins 290 ms after the first, give or take the way of the answers.
    expect(ends.at(-1)! - ends[0]!).toBeGreaterThan(250);
  });

  it('books no further than the horizon and says how far the next slot is', async () => {
    const slots = await senderOf(uniquePrefix());
    const number = 'whatsapp_cloud:2';
    const [first] = await slots.reserve([{ number, wanted: 100, stepMs: 100 }], 500);
    expect(first).toMatchObject({ offsetMs: 0, count: 6, stepMs: 100 });
    const [second] = await slots.reserve([{ number, wanted: 100, stepMs: 100 }], 500);
    expect(second!.count).toBe(0);
    expect(second!.offsetMs).toBeGreaterThan(550);
    expect(second!.offsetMs).toBeLessThanOrEqual(600);
  });

  it('answers many numbers in one round trip, each with its own slots', async () => {
    const slots = await senderOf(uniquePrefix());
    const requests = Array.from({ length: 200 }, (_, i) => ({
      number: `whatsapp_cloud:${i}`,
      wanted: (i % 3) + 1,
      stepMs: 12.65,
    }));
    const answers = await slots.reserve(requests, 500);
    expect(answers.map(({ count }) => count)).toEqual(requests.map(({ wanted }) => wanted));
    expect(answers.every(({ offsetMs, stepMs }) => offsetMs === 0 && stepMs === 12.65)).toBe(true);
  });

  it('lets nothing begin before the pause is over when the epoch is gone, and tells every sender', async () => {
    const prefix = uniquePrefix();
    const slots = await senderOf(prefix, 800);
    let restarts = 0;
    slots.onRestart(() => restarts++);
    const request = [{ number: 'whatsapp_cloud:3', wanted: 1, stepMs: 10 }];
    await waitUntil('the first pause is over', async () => (await slots.reserve(request, 500))[0]!.count === 1);

    await redis.del(`${prefix}{pace}:epoch`);
    await expect(slots.reserve(request, 500)).rejects.toBeInstanceOf(SlotsUnavailableError);
    await waitUntil('the run is adopted again', async () => {
      await slots.reserve(request, 500).catch(() => undefined);
      return slots.available;
    });
    expect(restarts).toBe(1);
    const [answer] = await slots.reserve(request, 500);
    expect(answer!.count === 0 || answer!.offsetMs > 100).toBe(true);
  });

  it('loads its script again after a flush', async () => {
    const slots = await senderOf(uniquePrefix());
    await redis.script('FLUSH');
    const request = [{ number: 'whatsapp_cloud:4', wanted: 1, stepMs: 10 }];
    const answer = await waitUntil('slots come again', () => slots.reserve(request, 500).catch(() => null));
    expect(answer[0]!.count).toBe(1);
  });

  it('rejects at once while nothing listens', async () => {
    const slots = openSendSlots({ url: 'redis://127.0.0.1:1', prefix: uniquePrefix() });
    open.push(slots);
    await expect(slots.reserve([{ number: 'x', wanted: 1, stepMs: 1 }], 500)).rejects.toBeInstanceOf(SlotsUnavailableError);
  });
});
