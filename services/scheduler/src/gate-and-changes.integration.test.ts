import { randomBytes } from 'node:crypto';
import type { AnyEvent, RecipientsRefused } from '#contracts/events';
import { formatId, uuidText } from '#contracts/ids';
import { silentLog } from '#runtime/log';
import { waitUntil } from '#runtime/wait-until';
import { SettleUnanswered } from './settle-unanswered';
import { Sweep } from './sweep';
import { Stage, type Campaign, type Executions } from '../test-support/stage';

let stage: Stage;
let executions: Executions;

beforeAll(async () => {
  stage = await Stage.open();
  executions = await stage.executions();
});

afterAll(() => stage?.close());

// What earlier tests left behind is swept away, so that each counts its own.
beforeEach(async () => {
  await sweep().sweepOnce();
});

const sweep = (holdGiveUpMs = 604_800_000): Sweep =>
  new Sweep(
    stage.database,
    new SettleUnanswered(stage.database, { creditAgeMs: 5_000, checkAfterMs: 60_000 }, silentLog),
    { checkAfterMs: 60_000, holdGiveUpMs, lookAgainMs: 0, runRetentionMs: 86_400_000, page: 500 },
    silentLog,
  );

async function eventsOf({ runId }: Campaign): Promise<AnyEvent[]> {
  return (await stage.outbox()).filter(
    ({ event }) => 'runId' in event && Buffer.isBuffer(event.runId) && event.runId.equals(runId),
  );
}

const refusalsOf = async (campaign: Campaign): Promise<RecipientsRefused[]> =>
  (await eventsOf(campaign)).flatMap((told) => (told.name === 'RecipientsRefused' ? [told.event] : []));

async function startedCampaign(recipients: number, credit: number, options: { validUntil?: number } = {}): Promise<Campaign> {
  const campaign = await stage.campaign({ recipients, ...options });
  await stage.plan(campaign);
  await stage.reportCredit([campaign.number], credit);
  await stage.releaser().releaseOnce();
  return campaign;
}

async function holdRun({ scheduleId }: Campaign): Promise<void> {
  await stage.sql.query(
    `UPDATE sender.gate SET run_hold_reason = 'template_parameters', run_hold_since = now() WHERE schedule_id = $1`,
    [uuidText(scheduleId)],
  );
}

describe('nothing is released', () => {
  it.each<[string, (campaign: Campaign) => Promise<void>]>([
    ['while it is paused', ({ scheduleId }) => stage.changeGate(scheduleId, 'pause', 1)],
    ['once it is cancelled', ({ scheduleId }) => stage.changeGate(scheduleId, 'cancel', 1)],
    ['while its run is held', holdRun],
    [
      'while its number is held',
      async ({ number }) => {
        await stage.sql.query(
          `INSERT INTO sender.number_state (number_id, hold_reason, hold_since) VALUES ($1, 'account', now())`,
          [uuidText(number.id)],
        );
      },
    ],
    [
      'of a revision that is not the newest',
      async ({ scheduleId }) => stage.changeGate(scheduleId, 'revise', 2, { audienceChanged: false }),
    ],
    [
      'without a gate',
      async ({ scheduleId }) => {
        await stage.sql.query('DELETE FROM sender.gate WHERE schedule_id = $1', [uuidText(scheduleId)]);
      },
    ],
    [
      'after its validity',
      async ({ runId }) => {
        await stage.sql.query(`UPDATE scheduler.active_run SET valid_until = now() - interval '1 ms' WHERE run_id = $1`, [runId]);
      },
    ],
  ])('%s', async (_name, stop) => {
    const campaign = await startedCampaign(30, 10);
    // Twin: it is released as long as nothing is in the way.
    expect(await stage.run(campaign)).toMatchObject({ released_position: 10 });
    await stop(campaign);
    await stage.reportCredit([campaign.number], 10);
    const releaser = stage.releaser();
    expect((await releaser.releaseOnce()).released).toBe(0);
    expect((await releaser.releaseOnce()).released).toBe(0);
    expect((await stage.run(campaign))?.released_position).toBe(10);
  });
});

it('goes on after a resume as soon as the event comes, and also if it never comes', async () => {
  for (const told of [true, false]) {
    const campaign = await startedCampaign(30, 10);
    await stage.changeGate(campaign.scheduleId, 'pause', 1);
    await stage.reportCredit([campaign.number], 10);
    await stage.releaser().releaseOnce();
    await stage.changeGate(campaign.scheduleId, 'resume', 1);
    expect((await stage.releaser().releaseOnce()).released).toBe(0);
    if (told) await stage.planner().planBatch(stage.batch({ name: 'ScheduleResumed', event: stage.changeOf(campaign, 3) }));
    else expect(await sweep().sweepOnce()).toMatchObject({ freed: 1 });
    expect((await stage.releaser().releaseOnce()).released).toBe(10);
  }
});

describe('a cancel', () => {
  it('takes what is not due yet out of the index and says so for everybody', async () => {
    const campaign = await stage.campaign({ recipients: 1_200, dueAt: Date.now() + 3_600_000 });
    await stage.plan(campaign);
    await stage.planner().planBatch(stage.batch({ name: 'ScheduleCancelled', event: stage.changeOf(campaign, 2) }));
    expect(await stage.run(campaign)).toMatchObject({ status: 'ended', released_position: 0 });
    const { rows } = await stage.sql.query('SELECT 1 FROM scheduler.due_entry WHERE run_id = $1', [campaign.runId]);
    expect(rows).toHaveLength(0);
    expect((await eventsOf(campaign)).map(({ name }) => name)).toEqual(['RunPlanned', 'RecipientsRefused', 'RunReleased']);
    expect(await refusalsOf(campaign)).toMatchObject([
      { fromPosition: 0, untilPosition: 1_200, count: 1_200, status: 'cancelled', reason: 'cancelled', revision: 1 },
    ]);
  });

  it('ends a run under way at its cursor, once, however often it is told', async () => {
    const campaign = await startedCampaign(1_000, 300);
    const cancelled = stage.batch({ name: 'ScheduleCancelled', event: stage.changeOf(campaign, 2) });
    await stage.planner().planBatch(cancelled);
    await stage.planner().planBatch(cancelled);
    await stage.plan(campaign);
    await stage.reportCredit([campaign.number], 300);
    expect((await stage.releaser().releaseOnce()).released).toBe(0);
    expect(await refusalsOf(campaign)).toMatchObject([{ fromPosition: 300, untilPosition: 1_000, count: 700 }]);
    expect(await stage.run(campaign)).toMatchObject({ status: 'released', released_position: 300 });
    const told = (await eventsOf(campaign)).filter(({ name }) => name === 'RunReleased');
    expect(told).toMatchObject([{ event: { released: 300 } }]);
  });

  it('comes to the same when it is in one batch with the request, and when only the gate knows of it', async () => {
    const together = await stage.campaign({ recipients: 7 });
    await stage
      .planner()
      .planBatch(
        stage.batch(
          { name: 'ScheduleRequested', event: together.event },
          { name: 'ScheduleCancelled', event: stage.changeOf(together, 2) },
        ),
      );
    expect(await refusalsOf(together)).toMatchObject([{ fromPosition: 0, untilPosition: 7, status: 'cancelled' }]);

    const untold = await startedCampaign(30, 10);
    await stage.changeGate(untold.scheduleId, 'cancel', 1);
    await stage.reportCredit([untold.number], 10);
    await stage.releaser().releaseOnce();
    expect(await sweep().sweepOnce()).toMatchObject({ cancelled: 1 });
    expect(await refusalsOf(untold)).toMatchObject([{ fromPosition: 10, untilPosition: 30, status: 'cancelled' }]);
  });

  it('does not move a cursor back when it comes while a slice is produced', async () => {
    const campaign = await stage.campaign({ recipients: 100 });
    await stage.plan(campaign);
    await stage.reportCredit([campaign.number], 40);
    const releaser = stage.releaser();
    const release = await releaser.pick();
    await stage.planner().planBatch(stage.batch({ name: 'ScheduleCancelled', event: stage.changeOf(campaign, 2) }));
    await releaser.finish(release);
    expect(await refusalsOf(campaign)).toMatchObject([{ fromPosition: 0, untilPosition: 100 }]);
    expect(await stage.run(campaign)).toMatchObject({ status: 'ended' });
  });
});

describe('a revision', () => {
  const revise = async (
    campaign: Campaign,
    change: { dueAt?: number; recipients?: number; priority?: number },
  ): Promise<AnyEvent> => {
    const { event } = campaign;
    await stage.changeGate(campaign.scheduleId, 'revise', 2, { audienceChanged: change.recipients !== undefined });
    const audience = change.recipients === undefined ? {} : await stage.audienceFields(change.recipients);
    return {
      name: 'ScheduleRevised',
      event: {
        ...event,
        ...audience,
        eventId: formatId('evt', randomBytes(16)),
        version: 2,
        revision: 2,
        priority: change.priority ?? event.priority,
        slots: event.slots.map((slot) => ({ ...slot, dueAt: change.dueAt ?? slot.dueAt })),
      },
    };
  };

  it('moves what is not due yet to its new instant, with its new audience', async () => {
    const campaign = await stage.campaign({ recipients: 3, dueAt: Date.now() + 50_000_000 });
    await stage.plan(campaign);
    await stage.planner().planBatch(stage.batch(await revise(campaign, { dueAt: Date.now() - 1, recipients: 5 })));
    // The old plan comes again, as after a rebalance.
    await stage.plan(campaign);
    expect(await stage.run(campaign)).toMatchObject({ revision: 2, total: 5 });
    await stage.reportCredit([campaign.number], 10);
    expect((await stage.releaser().releaseOnce()).released).toBe(5);
    const { rows } = await stage.sql.query('SELECT 1 FROM scheduler.due_entry WHERE run_id = $1', [campaign.runId]);
    expect(rows).toHaveLength(0);
    const planned = (await eventsOf(campaign)).filter(({ name }) => name === 'RunPlanned');
    expect(planned.map(({ event }) => (event as { revision: number; total: number }).total)).toEqual([3, 5]);
  });

  it('releases a run under way again from its beginning, without those that have a claim', async () => {
    const campaign = await startedCampaign(1_000, 600);
    await waitUntil('the first release', () => executions.of(campaign).length >= 600);
    const claimed = executions.of(campaign).filter(({ position }) => position % 3 === 0);
    await stage.sql.query('SELECT sender.refuse_unanswered($1, $2, $3, now(), $4, $5)', [
      uuidText(campaign.scheduleId),
      claimed.map(({ occurrenceId }) => occurrenceId),
      claimed.map(({ position }) => position),
      'cancelled',
      'cancelled',
    ]);
    await stage.planner().planBatch(stage.batch(await revise(campaign, {})));
    await stage.reportCredit([campaign.number], 100);
    const releaser = stage.releaser();
    expect((await releaser.releaseOnce()).released).toBe(100);
    await stage.reportCredit([campaign.number], 1_000);
    expect((await releaser.releaseOnce()).released).toBe(700);
    await waitUntil('the second release', () => executions.of(campaign).length >= 1_400);
    const second = executions.of(campaign).filter(({ revision }) => revision === 2);
    expect(second).toHaveLength(800);
    expect(second.map(({ position }) => position)).toEqual(
      [...Array(1_000).keys()].filter((position) => position >= 600 || position % 3 !== 0),
    );
    expect(await stage.run(campaign)).toMatchObject({ status: 'released', released_position: 1_000, revision: 2 });
  });
});

it('expires what was not released within its validity, at its cursor', async () => {
  const campaign = await startedCampaign(100, 40, { validUntil: Date.now() + 60_000 });
  expect(await sweep().sweepOnce()).toMatchObject({ expired: 0 });
  await stage.sql.query(`UPDATE scheduler.active_run SET valid_until = now() - interval '1 ms' WHERE run_id = $1`, [
    campaign.runId,
  ]);
  expect(await sweep().sweepOnce()).toMatchObject({ expired: 1 });
  expect(await refusalsOf(campaign)).toMatchObject([
    { fromPosition: 40, untilPosition: 100, count: 60, status: 'expired', reason: 'expired' },
  ]);
  expect(await stage.run(campaign)).toMatchObject({ status: 'released', released_position: 40 });
});

describe('a hold that is too long', () => {
  it('ends what was paused, counted from the later of due and hold', async () => {
    const campaign = await startedCampaign(100, 40);
    await stage.changeGate(campaign.scheduleId, 'pause', 1);
    await stage.reportCredit([campaign.number], 10);
    await stage.releaser().releaseOnce();
    expect(await sweep().sweepOnce()).toMatchObject({ givenUp: 0 });
    await stage.sql.query(`UPDATE scheduler.active_run SET waiting_since = now() - interval '8 days' WHERE run_id = $1`, [
      campaign.runId,
    ]);
    expect(await sweep().sweepOnce()).toMatchObject({ givenUp: 0 });
    await stage.sql.query(`UPDATE scheduler.active_run SET due_at = now() - interval '8 days' WHERE run_id = $1`, [
      campaign.runId,
    ]);
    expect(await sweep().sweepOnce()).toMatchObject({ givenUp: 1 });
    expect(await refusalsOf(campaign)).toMatchObject([
      { fromPosition: 40, untilPosition: 100, status: 'failed', reason: 'hold_expired' },
    ]);
  });

  it('ends what waits for a number that is held', async () => {
    const campaign = await startedCampaign(100, 40);
    await stage.sql.query(
      `INSERT INTO sender.number_state (number_id, hold_reason, hold_since) VALUES ($1, 'account', now() - interval '8 days')`,
      [uuidText(campaign.number.id)],
    );
    expect(await sweep().sweepOnce()).toMatchObject({ givenUp: 0 });
    await stage.sql.query(`UPDATE scheduler.active_run SET due_at = now() - interval '8 days' WHERE run_id = $1`, [
      campaign.runId,
    ]);
    expect(await sweep().sweepOnce()).toMatchObject({ givenUp: 1 });
    expect(await refusalsOf(campaign)).toMatchObject([
      { fromPosition: 40, untilPosition: 100, status: 'failed', reason: 'hold_expired' },
    ]);
  });
});

it('sets a run aside whose audience lacks a chunk, and releases the others', async () => {
  const broken = await stage.campaign({ recipients: 600 });
  const whole = await stage.campaign({ number: broken.number, recipients: 5 });
  const { rows: lost } = await stage.sql.query('DELETE FROM api.audience_chunk WHERE chunk = 1 RETURNING *');
  await stage.plan(broken, whole);
  await stage.reportCredit([broken.number], 1_200);
  const releaser = stage.releaser();
  await releaser.releaseOnce();
  await stage.reportCredit([broken.number], 1_200);
  await releaser.releaseOnce();
  expect(await stage.run(whole)).toMatchObject({ status: 'released' });
  expect(await stage.run(broken)).toMatchObject({ status: 'active', released_position: 0 });
  // Twin: once the chunk is back the run goes on.
  for (const chunk of lost)
    await stage.sql.query(
      'INSERT INTO api.audience_chunk (audience_id, chunk, count, hashes, body) VALUES ($1, $2, $3, $4, $5)',
      [chunk.audience_id, chunk.chunk, chunk.count, chunk.hashes, chunk.body],
    );
  await stage.sql.query(`UPDATE scheduler.active_run SET looked_at = now() WHERE run_id = $1`, [broken.runId]);
  expect(await sweep().sweepOnce()).toMatchObject({ freed: 1 });
  await stage.reportCredit([broken.number], 1_200);
  expect((await releaser.releaseOnce()).released).toBe(600);
});
