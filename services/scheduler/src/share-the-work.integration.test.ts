import { openProducer } from '#runtime/kafka/open-producer';
import { silentLog } from '#runtime/log';
import { waitUntil } from '#runtime/wait-until';
import { uuidText } from '#contracts/ids';
import { SettleUnanswered } from './settle-unanswered';
import { serverAddress } from '../../../test-support/isolation';
import { Stage, type Executions } from '../test-support/stage';

let stage: Stage;
let executions: Executions;

beforeAll(async () => {
  stage = await Stage.open();
  executions = await stage.executions();
});

afterAll(() => stage?.close());

const creditOf = async ({ id }: { id: Buffer }): Promise<number> => {
  const { rows } = await stage.sql.query<{ credit: number }>('SELECT credit FROM scheduler.number_credit WHERE number_id = $1', [
    uuidText(id),
  ]);
  return rows[0]!.credit;
};

it('lets two instances work at the same time on twenty numbers without handing anybody over twice', async () => {
  const numbers = Array.from({ length: 20 }, () => stage.number());
  const campaigns = await stage.campaigns(numbers.map((number) => ({ number, recipients: 700 })));
  await stage.plan(...campaigns);
  await stage.reportCredit(numbers, 1_000);
  const limits = { records: 500, numbers: 3 };
  const worked = await Promise.all(
    ['one', 'two'].map(async (instance) => {
      const releaser = stage.releaser(instance, limits);
      let count = 0;
      for (let idle = 0; idle < 3;) {
        const { released } = await releaser.releaseOnce();
        count += released;
        idle = released === 0 ? idle + 1 : 0;
      }
      return count;
    }),
  );
  expect(worked[0]! + worked[1]!).toBe(14_000);
  expect(Math.min(...worked)).toBeGreaterThan(0);
  await waitUntil('all executions', () => campaigns.every((campaign) => executions.of(campaign).length >= 700));
  for (const campaign of campaigns) {
    expect(new Set(executions.of(campaign).map(({ position }) => position)).size).toBe(700);
    expect(executions.of(campaign)).toHaveLength(700);
  }
});

it('leaves a number to the instance that leased it, until the lease ends', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 100 });
  await stage.plan(campaign);
  await stage.reportCredit([number], 50);
  const first = stage.releaser('first', { leaseMs: 2_000 });
  const second = stage.releaser('second', { leaseMs: 2_000 });

  const release = await first.pick();
  expect(release.picked.slices).toHaveLength(1);
  expect((await second.pick()).picked.slices).toHaveLength(0);
  const again = await waitUntil('the lease to end', async () => {
    const later = await second.pick();
    return later.picked.slices.length > 0 ? later : undefined;
  });
  expect(await second.finish(again)).toEqual({ released: 50, failed: false });

  // The one that was too slow produces the same messages again, and moves nothing.
  await stage.reportCredit([number], 50);
  await first.finish(release);
  expect(await stage.run(campaign)).toMatchObject({ released_position: 50 });
});

it('sends at the full rate after dying twenty times between producing and moving the cursor', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 1_000 });
  await stage.plan(campaign);
  await stage.reportCredit([number], 400);
  for (let death = 0; death < 20; death++) {
    const dying = stage.releaser(`dying-${death}`, { leaseMs: 0 });
    const { picked } = await dying.pick();
    expect(picked.slices).toMatchObject([{ from: 0, until: 400, quota: 400 }]);
    await dying.produce(picked);
  }
  expect(await creditOf(number)).toBe(400);
  const living = stage.releaser('living');
  expect((await living.releaseOnce()).released).toBe(400);
  expect(await creditOf(number)).toBe(0);
  await stage.reportCredit([number], 600);
  expect((await living.releaseOnce()).released).toBe(600);
  await waitUntil('all copies', () => executions.of(campaign).length >= 20 * 400 + 1_000);
  expect(new Set(executions.of(campaign).map(({ occurrenceId }) => occurrenceId.toString('hex'))).size).toBe(1_000);
});

it('keeps cursor and credit where the brokers did not acknowledge, and frees the number at once', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 10 });
  await stage.plan(campaign);
  await stage.reportCredit([number], 10);
  // A producer that is closed acknowledges nothing, as brokers without a leader do.
  const deaf = openProducer({ brokers: serverAddress('KAFKA_BROKERS').split(','), clientId: 'deaf' });
  await deaf.close();
  expect((await stage.releaser('unlucky', {}, deaf).releaseOnce()).released).toBe(0);
  expect(await creditOf(number)).toBe(10);
  expect((await stage.releaser('lucky').releaseOnce()).released).toBe(10);
});

it('gives credit that is older than allowed no weight, and none of another sender that gave the number up', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 10 });
  await stage.plan(campaign);
  await stage.reportCredit([number], 5, 'sender-1');
  expect((await stage.releaser('late', { creditAgeMs: 0 }).releaseOnce()).released).toBe(0);
  await stage.reportCredit([number], 7, 'sender-2');
  await stage.reportCredit([number], 0, 'sender-1');
  expect((await stage.releaser('now').releaseOnce()).released).toBe(7);
  // Twin: the sender that has the number can take its credit back.
  await stage.reportCredit([number], 3, 'sender-2');
  await stage.reportCredit([number], 0, 'sender-2');
  expect((await stage.releaser('now').releaseOnce()).released).toBe(0);
});

describe('what nobody answered', () => {
  const settler = () => new SettleUnanswered(stage.database, { creditAgeMs: 60_000, checkAfterMs: 60_000 }, silentLog);
  const makeDue = (runId: Buffer) =>
    stage.sql.query(`UPDATE scheduler.run SET check_at = now() - interval '1 s' WHERE run_id = $1 AND check_at IS NOT NULL`, [
      runId,
    ]);

  it('is released again without those that were answered, three times, then refused where it can be seen', async () => {
    const number = stage.number();
    const campaign = await stage.campaign({ number, recipients: 600 });
    await stage.plan(campaign);
    await stage.reportCredit([number], 1_000);
    const releaser = stage.releaser();
    await releaser.releaseOnce();
    await waitUntil('the first release', () => executions.of(campaign).length >= 600);
    // The gate has answered for all but three, spread over both chunks.
    const lost = new Set([7, 500, 599]);
    const answered = executions.of(campaign).filter(({ position }) => !lost.has(position));
    await stage.sql.query('SELECT sender.refuse_unanswered($1, $2, $3, now(), $4, $5)', [
      uuidText(campaign.scheduleId),
      answered.map(({ occurrenceId }) => occurrenceId),
      answered.map(({ position }) => position),
      'cancelled',
      'cancelled',
    ]);
    expect(await settler().settleOnce()).toMatchObject({ releasedAgain: 0, refused: 0 });
    for (let pass = 1; pass <= 3; pass++) {
      await makeDue(campaign.runId);
      expect(await settler().settleOnce()).toMatchObject({ releasedAgain: 1, refused: 0 });
      expect(await stage.run(campaign)).toMatchObject({ status: 'active', released_position: 600 });
      await stage.reportCredit([number], 2);
      expect((await releaser.releaseOnce()).released).toBe(2);
      await stage.reportCredit([number], 1_000);
      expect((await releaser.releaseOnce()).released).toBe(1);
      await waitUntil('the release', () => executions.of(campaign).length >= 600 + 3 * pass);
      expect(
        executions
          .of(campaign)
          .slice(-3)
          .map(({ position }) => position),
      ).toEqual([...lost]);
    }
    await makeDue(campaign.runId);
    expect(await settler().settleOnce()).toMatchObject({ releasedAgain: 0, refused: 3, ended: 1 });
    expect(await stage.run(campaign)).toMatchObject({ status: 'ended', released_position: 600 });
    const { rows } = await stage.sql.query(
      `SELECT position, state, reason FROM sender.claim WHERE schedule_id = $1 AND state = 'refused' ORDER BY position`,
      [uuidText(campaign.scheduleId)],
    );
    expect(rows).toEqual([7, 500, 599].map((position) => ({ position, state: 'refused', reason: 'internal' })));
    const told = (await stage.outbox()).filter(({ name, event }) => name === 'RunReleased' && event.runId.equals(campaign.runId));
    expect(told).toHaveLength(1);
  });

  it('waits while no sender reports for its number', async () => {
    const number = stage.number();
    const campaign = await stage.campaign({ number, recipients: 1 });
    await stage.plan(campaign);
    await stage.reportCredit([number], 1);
    await stage.releaser().releaseOnce();
    await makeDue(campaign.runId);
    await stage.sql.query(`UPDATE scheduler.number_credit SET reported_at = now() - interval '61 s' WHERE number_id = $1`, [
      uuidText(number.id),
    ]);
    expect(await settler().settleOnce()).toMatchObject({ postponed: 1, releasedAgain: 0, refused: 0 });
    await makeDue(campaign.runId);
    await stage.reportCredit([number], 0);
    expect(await settler().settleOnce()).toMatchObject({ postponed: 0, releasedAgain: 1 });
  });

  it('ends as cancelled when the schedule was cancelled meanwhile', async () => {
    const number = stage.number();
    const campaign = await stage.campaign({ number, recipients: 4 });
    await stage.plan(campaign);
    await stage.reportCredit([number], 4);
    await stage.releaser().releaseOnce();
    await stage.changeGate(campaign.scheduleId, 'cancel', 1);
    await makeDue(campaign.runId);
    expect(await settler().settleOnce()).toMatchObject({ refused: 4, ended: 1 });
    const { rows } = await stage.sql.query('SELECT DISTINCT state, reason FROM sender.claim WHERE schedule_id = $1', [
      uuidText(campaign.scheduleId),
    ]);
    expect(rows).toEqual([{ state: 'cancelled', reason: 'cancelled' }]);
  });
});
