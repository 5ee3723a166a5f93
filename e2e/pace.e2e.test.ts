import { Client } from 'pg';
import { partitionFor } from '#contracts/murmur2';
import { TOPICS } from '#contracts/topics';
import { waitUntil } from '#runtime/wait-until';
import type { ServiceProcess } from '../tools/local-platform/src/service-process';
import {
  addNumber,
  messagesOf,
  newPhoneNumberId,
  received,
  recipients,
  schedule,
  startInstallation,
  untilSettled,
  upload,
  type Installation,
  type TestNumber,
} from './support/installation';
import { achievedRate, arrivals, contradictions, expectPaced, longestGap } from './support/oracle';

// The provider shares the machine with everything else here. When the machine itself stands still for longer than the guard allows
// for, a try says nothing about our pace: each test has a fresh number, and three more tries.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

describe('pace', () => {
  let on: Installation;
  let rejectedBefore: number;
  let made = 0;
  beforeAll(async () => {
    on = await startInstallation({ rates: [1], instances: { sender: 2 } });
  });
  beforeEach(async () => {
    rejectedBefore = (await on.simulator.control.summary()).rejectedByRate;
  });
  afterAll(async () => {
    await on?.stop();
  });

  async function freshNumber(phoneNumberId = newPhoneNumberId()): Promise<TestNumber> {
    const number = { name: `fresh-${++made}`, phoneNumberId, ratePerSecond: 80 };
    await addNumber(on, number);
    return number;
  }

  async function expectNoneRejected(): Promise<void> {
    expect((await on.simulator.control.summary()).rejectedByRate - rejectedBefore).toBe(0);
  }

  it('2,000 due at once leave at the rate of the number, each once', async () => {
    const number = await freshNumber();
    const { runId } = await schedule(on.api, number, { audienceId: await upload(on.api, recipients(2_000)) });
    await untilSettled(on.api, runId, 60_000);
    const times = await arrivals(on.simulator, number.phoneNumberId);
    expect(times).toHaveLength(2_000);
    expectPaced(times, 80);
    await expectNoneRejected();
  });

  it('the death of the sender leaves a gap of at most 10 s, and pace on both sides of it', async () => {
    const number = await freshNumber();
    const { runId } = await schedule(on.api, number, { audienceId: await upload(on.api, recipients(1_600)) });
    await waitUntil('some of it to be out', async () => (await arrivals(on.simulator, number.phoneNumberId)).length > 300, {
      deadlineMs: 20_000,
    });
    const owner = await ownerOf(on, number.phoneNumberId);
    await owner.kill();
    await untilSettled(on.api, runId, 90_000);
    owner.start();
    const times = await arrivals(on.simulator, number.phoneNumberId);
    const gap = longestGap(times);
    expect(gap.ms).toBeLessThanOrEqual(10_000);
    // A call that the dead sender had begun may be uncertain; nothing else may be missing.
    expect(contradictions(await messagesOf(on.api, runId), await received(on.simulator, number.phoneNumberId))).toEqual([]);
    await on.platform.untilReady();
    expectPaced(times.slice(0, gap.index), 80);
    expectPaced(times.slice(gap.index), 80);
    await expectNoneRejected();
  });

  it('a slow number costs a fast one in its partition nothing', async () => {
    const slow = on.numbers[0]!;
    const partition = (id: string): number => partitionFor(`whatsapp_cloud:${id}`, TOPICS.executions.partitions);
    let id = Number(newPhoneNumberId());
    while (partition(String(id)) !== partition(slow.phoneNumberId)) id++;
    const fast = await freshNumber(String(id));
    await schedule(on.api, slow, { audienceId: await upload(on.api, recipients(200, 2_000)) });
    await waitUntil('the slow number to be at work', async () => (await arrivals(on.simulator, slow.phoneNumberId)).length > 1, {
      deadlineMs: 20_000,
    });
    const { runId } = await schedule(on.api, fast, { audienceId: await upload(on.api, recipients(800)) });
    await untilSettled(on.api, runId, 60_000, ['submitted']);
    const times = await arrivals(on.simulator, fast.phoneNumberId);
    expect(times).toHaveLength(800);
    expectPaced(times, 80);
    await expectNoneRejected();
    const slowTimes = await arrivals(on.simulator, slow.phoneNumberId);
    expect(slowTimes.length).toBeGreaterThan(5);
    expect(achievedRate(slowTimes)).toBeLessThanOrEqual(1.01);
  });
});

/** The sender that reports credit for this number: the one that owns its partition. */
async function ownerOf(on: Installation, phoneNumberId: string): Promise<ServiceProcess> {
  const client = new Client({ connectionString: on.servers.DATABASE_URL });
  await client.connect();
  try {
    return await waitUntil('a sender to own the number', async () => {
      const { rows } = await client.query<{ sender: string }>(
        'SELECT c.sender FROM scheduler.number_credit c JOIN api.number n ON n.id = c.number_id WHERE n.provider_number_id = $1',
        [phoneNumberId],
      );
      return on.platform.of('sender').find((sender) => sender.name === rows[0]?.sender);
    });
  } finally {
    await client.end();
  }
}
