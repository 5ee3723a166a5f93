import { Stage, type Campaign, type Number as SendingNumber } from '../test-support/stage';

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(() => stage?.close());

const releasedOf = async (campaign: Campaign): Promise<number> => (await stage.run(campaign))!.released_position;

/** Rounds as a sender causes them: it says how much its lane takes, the scheduler fills it. */
async function rounds(number: SendingNumber, credit: number, times: number): Promise<void> {
  const releaser = stage.releaser();
  for (let round = 0; round < times; round++) {
    await stage.reportCredit([number], credit);
    await releaser.releaseOnce();
  }
}

it('lets an urgent message overtake a campaign under way in the next round', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 5_000 });
  await stage.plan(campaign);
  await rounds(number, 160, 3);
  expect(await releasedOf(campaign)).toBe(480);

  const urgent = await stage.campaign({ number, recipients: 1, priority: 1 });
  const lessUrgent = await stage.campaign({ number, recipients: 1, priority: 9 });
  await stage.plan(urgent, lessUrgent);
  await rounds(number, 160, 1);
  expect(await releasedOf(urgent)).toBe(1);
  expect(await releasedOf(campaign)).toBe(480);
  await rounds(number, 160, 2);
  expect(await releasedOf(campaign)).toBe(800);
  expect(await releasedOf(lessUrgent)).toBe(0);
});

it('shares a number equally between two campaigns, also when the second starts later', async () => {
  const number = stage.number();
  const first = await stage.campaign({ number, recipients: 20_000 });
  await stage.plan(first);
  await rounds(number, 160, 20);
  expect(await releasedOf(first)).toBe(3_200);

  const second = await stage.campaign({ number, recipients: 20_000 });
  await stage.plan(second);
  await rounds(number, 160, 20);
  expect(await releasedOf(first)).toBe(3_200 + 1_600);
  expect(await releasedOf(second)).toBe(1_600);
});

it('shares equally to the message where the credit does not divide', async () => {
  const number = stage.number();
  const campaigns = await stage.campaigns([1, 2, 3].map(() => ({ number, recipients: 3_000 })));
  await stage.plan(...campaigns);
  await rounds(number, 100, 30);
  const shares: number[] = [];
  for (const campaign of campaigns) shares.push(await releasedOf(campaign));
  expect(shares.reduce((sum, share) => sum + share)).toBe(3_000);
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(34);
});

it('gives a campaign that was paused its share from the resume on, and not what it missed', async () => {
  const number = stage.number();
  const [steady, paused] = await stage.campaigns([
    { number, recipients: 20_000 },
    { number, recipients: 20_000 },
  ]);
  await stage.plan(steady!, paused!);
  await rounds(number, 100, 10);
  await stage.changeGate(paused!.scheduleId, 'pause', 1);
  await rounds(number, 100, 20);
  const [steadyBefore, pausedBefore] = [await releasedOf(steady!), await releasedOf(paused!)];
  expect(pausedBefore).toBe(500);

  await stage.changeGate(paused!.scheduleId, 'resume', 1);
  await stage.planner().planBatch(stage.batch({ name: 'ScheduleResumed', event: stage.changeOf(paused!, 3) }));
  await rounds(number, 100, 20);
  expect((await releasedOf(steady!)) - steadyBefore).toBe(1_000);
  expect((await releasedOf(paused!)) - pausedBefore).toBe(1_000);
});

it('takes many small runs of a number in one round', async () => {
  const number = stage.number();
  const campaigns = await stage.campaigns(Array.from({ length: 50 }, () => ({ number, recipients: 1 })));
  await stage.plan(...campaigns);
  await stage.reportCredit([number], 160);
  expect(await stage.releaser().releaseOnce()).toMatchObject({
    woken: 0,
    slices: 50,
    released: 50,
    more: false,
  });
});
