import { waitUntil } from '#runtime/wait-until';
import { partitionFor } from '#contracts/murmur2';
import { Stage, type Executions } from '../test-support/stage';

let stage: Stage;
let executions: Executions;

beforeAll(async () => {
  stage = await Stage.open();
  executions = await stage.executions();
});

afterAll(() => stage?.close());

it('plans a schedule, wakes it when it is due and hands every recipient over once, on the partition of its provider identity', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 1_203, dueAt: Date.now() + 2_500 });
  await stage.plan(campaign);
  await stage.reportCredit([number], 500);
  const releaser = stage.releaser();

  const early = await releaser.releaseOnce();
  expect(early).toMatchObject({ slices: 0, released: 0, unserved: false });
  expect((await stage.run(campaign))?.status).toBe('planned');

  await waitUntil('the instant to be within sight', async () => ((await releaser.pick()).picked.look.nextDueInMs ?? -1) > 0);
  await waitUntil('the first slice', async () => (await releaser.releaseOnce()).released > 0);
  expect(await stage.run(campaign)).toMatchObject({ status: 'active', released_position: 500, total: 1_203 });
  expect(await releaser.releaseOnce()).toMatchObject({ released: 0, unserved: true });

  await stage.reportCredit([number], 2_000);
  expect(await releaser.releaseOnce()).toMatchObject({ released: 703, more: false, unserved: false });
  expect(await stage.run(campaign)).toMatchObject({ status: 'released', released_position: 1_203 });

  await waitUntil('all executions', () => executions.of(campaign).length >= 1_203);
  const received = executions.of(campaign);
  expect(received.map(({ position }) => position).sort((a, b) => a - b)).toEqual([...Array(1_203).keys()]);
  expect(new Set(received.map(({ occurrenceId }) => occurrenceId.toString('hex'))).size).toBe(1_203);
  expect(received[0]).toMatchObject({ revision: 1, priority: 5, validUntil: null, dueAt: campaign.event.slots[0]!.dueAt });
  expect(Math.min(...received.map(({ releasedAt }) => releasedAt))).toBeGreaterThanOrEqual(campaign.event.slots[0]!.dueAt);
  const partition = partitionFor(number.identity, stage.partitions);
  expect(new Set(executions.all.map((each) => each.partition))).toEqual(new Set([partition]));

  const events = await stage.outbox();
  expect(events.map(({ name }) => name)).toEqual(['RunPlanned', 'RunReleased']);
  expect(events[0]!.event).toMatchObject({ total: 1_203, revision: 1, slot: 'once', mode: 'test', labels: { campaign: 'test' } });
  expect(events[1]!.event).toMatchObject({ released: 1_203, revision: 1 });
});
