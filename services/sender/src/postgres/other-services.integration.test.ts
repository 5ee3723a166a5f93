import { sqlState } from '#runtime/postgres/failures';
import { statement } from '#runtime/postgres/sql-file';
import { dueItem, evidence, GateUnderTest, OPTIONS, results, type TestSchedule } from './test-support/gate-under-test';

/** What the api and the scheduler see of the gate, with their own rights. */
let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

const SETTLE = statement('settle', 'SELECT * FROM sender.settle_cancel($1, $2)');
const COUNT = statement('count', 'SELECT * FROM sender.count_claims($1)');
const numbers = (row: Record<string, string> | undefined) =>
  Object.fromEntries(Object.entries(row!).map(([state, count]) => [state, Number(count)]));

/** One message in each state, and four that nobody asked for. */
async function oneOfEach(schedule: TestSchedule) {
  const states = [
    'sending',
    'accepted',
    'retry_wait',
    'uncertain',
    'unconfirmed',
    'failed',
    'refused',
    'expired',
    'cancelled',
  ] as const;
  const items = Object.fromEntries(
    states.map((state, position) => [state, dueItem(schedule, { position, recipientHash: Buffer.from(state) })]),
  ) as Record<(typeof states)[number], ReturnType<typeof dueItem>>;
  await world.gate.addSuppressions([
    { tenantId: schedule.tenantId, channel: 'whatsapp', category: '*', recipientHash: Buffer.from('refused'), reason: 'asked' },
  ]);
  items.expired = { ...items.expired, validUntil: Date.now() - 1 };
  await byName(schedule, [items.cancelled]);
  await world.gate.decide(Object.values(items), OPTIONS);
  await world.record(results(items.accepted).accepted);
  await world.record(results(items.retry_wait).retry);
  await world.record(results(items.failed).failed);
  await world.record(results(items.unconfirmed).uncertain);
  await world.passTime(items.unconfirmed, 3_600_000);
  await world.gate.sweepDeadlines({ evidenceWindowMs: 900_000, resendAfterMs: 60_000, graceMs: 5_000 });
  await world.record(results(items.uncertain).uncertain);
  return items;
}

async function byName(schedule: TestSchedule, items: Array<{ occurrenceId: Buffer; position: number }>) {
  return world.api.rows<{ occurrence_id: Buffer; prevented: boolean; state: string }>(
    statement('by-name', 'SELECT * FROM sender.cancel_occurrences($1, $2, $3, $4, now(), 1)'),
    [schedule.scheduleId, schedule.runId, items.map((item) => item.occurrenceId), items.map((item) => item.position)],
  );
}

const ONE_OF_EACH = {
  sending: 1,
  accepted: 1,
  retry_wait: 1,
  uncertain: 1,
  unconfirmed: 1,
  failed: 1,
  refused: 1,
  expired: 1,
  cancelled: 1,
};

test('a cancel counts every state, ends what waited, and is the same when it is counted again before anything else', async () => {
  const schedule = await world.openSchedule();
  const items = await oneOfEach(schedule);
  await world.changeGate(schedule, 'pause');
  const held = dueItem(schedule, { position: 20 });
  await world.decideOne(held);
  expect(numbers((await world.api.rows<Record<string, string>>(COUNT, [schedule.runId]))[0])).toEqual(ONE_OF_EACH);

  await world.changeGate(schedule, 'cancel');
  const events = await world.eventsOf(async () => {
    const [row] = await world.api.rows<Record<string, string>>(SETTLE, [schedule.scheduleId, schedule.runId]);
    expect(numbers(row)).toEqual(ONE_OF_EACH);
  });
  expect(events.map(({ name, event }) => [name, 'status' in event && event.status])).toEqual([
    ['MessageRefused', 'cancelled'],
    ['MessageRefused', 'cancelled'],
  ]);
  expect(await world.claim(items.retry_wait)).toMatchObject({ state: 'cancelled', step: 3 });
  expect(await world.claim(held)).toMatchObject({ state: 'cancelled', attempt: 0 });
  expect(await world.waiting(held)).toBeUndefined();
  // Prevented by the cancel itself, so they count neither as retry_wait nor as cancelled before.
  const [again] = await world.api.rows<Record<string, string>>(SETTLE, [schedule.scheduleId, schedule.runId]);
  expect(numbers(again)).toEqual({ ...ONE_OF_EACH, retry_wait: 0 });
});

test('what the gate ended between the cancel and its counting is prevented, not ended', async () => {
  const schedule = await world.openSchedule();
  const items = [0, 1, 2].map((position) => dueItem(schedule, { position }));
  await world.gate.decide(items.slice(0, 1), OPTIONS);
  await world.record({ ...results(items[0]!).retry, nextAttemptAt: Date.now() - 1 });
  await world.changeGate(schedule, 'cancel');
  for (const verdict of await world.gate.decide(items, OPTIONS))
    expect(verdict).toMatchObject({ kind: 'final', status: 'cancelled' });
  const [row] = await world.api.rows<Record<string, string>>(SETTLE, [schedule.scheduleId, schedule.runId]);
  expect(Object.values(numbers(row))).toEqual(Array(9).fill(0));
});

test('only a cancelled schedule can be settled', async () => {
  const schedule = await world.openSchedule();
  await expect(world.api.rows(SETTLE, [schedule.scheduleId, schedule.runId])).rejects.toThrow('is not cancelled');
});

test('named messages: prevented without a claim or while they wait for a retry, else told how they stand', async () => {
  const schedule = await world.openSchedule();
  const items = await oneOfEach(schedule);
  const fresh = dueItem(schedule, { position: 30 });
  const foreign = dueItem(await world.openSchedule());
  const rows = await byName(schedule, [...Object.values(items), fresh, foreign]);
  const answer = (item: { occurrenceId: Buffer }) => rows.find((row) => row.occurrence_id.equals(item.occurrenceId));
  expect(answer(fresh)).toMatchObject({ prevented: true, state: 'cancelled' });
  expect(answer(items.retry_wait)).toMatchObject({ prevented: true, state: 'cancelled' });
  for (const state of ['sending', 'accepted', 'uncertain', 'unconfirmed', 'failed', 'refused', 'expired', 'cancelled'] as const)
    expect(answer(items[state])).toMatchObject({ prevented: false, state });
  expect(answer(foreign)).toBeUndefined();
  expect(await world.claim(foreign)).toBeUndefined();
});

test('an audience can not change once there is a claim', async () => {
  const schedule = await world.openSchedule();
  await world.revise(schedule, 2, { audienceChanged: true });
  await world.decideOne(dueItem(schedule, { revision: 2 }));
  const refused = await world.revise(schedule, 3, { audienceChanged: true }).catch((error: unknown) => error);
  expect(sqlState(refused)).toBe('PT409');
  await world.revise(schedule, 3);
});

test('the scheduler sees what is answered, and gives up only what is not', async () => {
  const schedule = await world.openSchedule();
  const [claimed, waiting, lost] = [0, 1, 2].map((position) => dueItem(schedule, { position }));
  await world.decideOne(claimed!);
  await world.changeGate(schedule, 'pause');
  await world.decideOne(waiting!);
  const ids = async (name: string) =>
    (await world.scheduler.rows<{ id: Buffer }>(statement(name, `SELECT * FROM sender.${name}($1) AS id`), [schedule.runId])).map(
      ({ id }) => id.toString('hex'),
    );
  const hex = (item: { occurrenceId: Buffer }) => item.occurrenceId.toString('hex');
  expect(await ids('claimed_in_run')).toEqual([hex(claimed!)]);
  expect((await ids('answered_in_run')).sort()).toEqual([hex(claimed!), hex(waiting!)].sort());
  const count = statement('answered', 'SELECT sender.count_answered($1)::int AS count');
  expect(await world.scheduler.rows(count, [schedule.runId])).toEqual([{ count: 2 }]);

  const events = await world.eventsOf(async () => {
    const rows = await world.scheduler.rows(
      statement('give-up', `SELECT sender.refuse_unanswered($1, $2, $3, now(), 'refused', 'internal') AS refused`),
      [schedule.scheduleId, [claimed!, waiting!, lost!, lost!].map((item) => item.occurrenceId), [0, 1, 2, 2]],
    );
    expect(rows).toEqual([{ refused: 1 }]);
  });
  expect(events).toMatchObject([{ name: 'MessageRefused', event: { reason: 'internal', position: 2, step: 1 } }]);
  expect(await world.claim(claimed!)).toMatchObject({ state: 'sending' });
  expect(await world.decideOne(lost!)).toEqual({ kind: 'silent', why: 'duplicate' });
  expect(
    await world.scheduler.rows(
      statement('gate', 'SELECT revision, status, run_hold_reason FROM sender.gate_public WHERE schedule_id = $1'),
      [schedule.scheduleId],
    ),
  ).toEqual([{ revision: 1, status: 'paused', run_hold_reason: null }]);
});

test('the sender refuses what has no content or no recipient, also while it waits, and never what is claimed', async () => {
  const schedule = await world.openSchedule();
  const [claimed, waiting, fresh] = [0, 1, 2].map((position) => dueItem(schedule, { position }));
  await world.decideOne(claimed!);
  await world.changeGate(schedule, 'pause');
  await world.decideOne(waiting!);
  const refuse = statement(
    'missing',
    `SELECT sender.refuse_unanswered($1, $2, $3, now(), 'refused', 'content_missing') AS refused`,
  );
  const ids = [claimed!, waiting!, fresh!].map((item) => item.occurrenceId);
  expect(await world.sender.rows(refuse, [schedule.scheduleId, ids, [0, 1, 2]])).toEqual([{ refused: 2 }]);
  expect(await world.claim(claimed!)).toMatchObject({ state: 'sending' });
  expect(await world.claim(waiting!)).toMatchObject({ state: 'refused', reason: 'content_missing' });
  expect(await world.waiting(waiting!)).toBeUndefined();
});

test('the api sees claims, waits, attempts and what is live', async () => {
  const schedule = await world.openSchedule();
  const items = await oneOfEach(schedule);
  const live = statement('live', 'SELECT sending::int, waiting::int FROM sender.live_counts($1)');
  expect(await world.api.rows(live, [schedule.runId])).toEqual([{ sending: 1, waiting: 1 }]);
  const view = (name: string) => statement(name, `SELECT * FROM sender.${name} WHERE occurrence_id = $1`);
  expect(await world.api.rows(view('claim_public'), [items.accepted.occurrenceId])).toMatchObject([
    { state: 'accepted', step: 2, attempt: 1, provider_message_id: 'wamid.TEST', position: 1 },
  ]);
  expect(await world.api.rows(view('waiting_public'), [items.retry_wait.occurrenceId])).toMatchObject([{ reason: 'retry' }]);
  await world.gate.recordResults([{ ...results(items.uncertain).accepted, traceId: 'a'.repeat(32) }], {
    evidenceWindowMs: 900_000,
    resendAfterMs: 60_000,
  });
  // An attempt has one row: the answer that came in the end, not that it was open for a while.
  expect(await world.api.rows(view('attempt_public'), [items.uncertain.occurrenceId])).toMatchObject([
    {
      attempt: 1,
      outcome: 'accepted',
      provider_message_id: 'wamid.TEST',
      waits: [{ reason: 'pace', ms: 12 }],
      trace_id: 'a'.repeat(32),
    },
  ]);
});

test('nobody may write or read more than that', async () => {
  for (const [database, text] of [
    [world.api, 'SELECT 1 FROM sender.claim'],
    [world.api, 'UPDATE sender.gate SET status = status'],
    [world.scheduler, `SELECT sender.change_gate('00000000-0000-0000-0000-000000000000', 'cancel', 1, '{}')`],
    [world.scheduler, 'SELECT 1 FROM sender.claim_public'],
    [world.sender, `UPDATE sender.gate SET status = 'active'`],
    [world.sender, 'DELETE FROM sender.claim'],
    [world.sender, 'DELETE FROM sender.evidence'],
  ] as const) {
    const refused = await database.rows(statement('forbidden', text)).catch((error: unknown) => error);
    expect([text, sqlState(refused)]).toEqual([text, '42501']);
  }
});

test('weeks get partitions of their own, and rows that were there before move into them', async () => {
  const schedule = await world.openSchedule({ runId: Buffer.from('000077770102030405060708', 'hex') });
  const item = await world.claimed(schedule);
  await world.record(results(item).uncertain);
  await world.gate.recordEvidence([evidence(item, 'sent')]);
  const where = async () =>
    (
      await world.admin.rows<{ partition: string }>(
        statement(
          'where',
          ['claim', 'attempt_begun', 'attempt_outcome', 'evidence']
            .map((table) => `SELECT tableoid::regclass::text AS partition FROM sender.${table} WHERE occurrence_id = $1`)
            .join(' UNION ALL '),
        ),
        [item.occurrenceId],
      )
    ).map(({ partition }) => partition);
  expect(await where()).toEqual([
    'sender.claim_default',
    'sender.attempt_begun_default',
    'sender.attempt_outcome_default',
    'sender.evidence_default',
  ]);
  for (const table of ['claim', 'attempt_begun', 'attempt_outcome', 'evidence'])
    await world.admin.rows(statement('partition', 'SELECT sender.ensure_week_partition($1, $2, $3)'), [
      table,
      Math.floor(0x7777 / 7),
      '',
    ]);
  expect(await where()).toEqual([
    'sender.claim_w4369',
    'sender.attempt_begun_w4369',
    'sender.attempt_outcome_w4369',
    'sender.evidence_w4369',
  ]);
  await world.gate.ensureClaimPartitions(5);
  await world.gate.ensureClaimPartitions(5);
  expect(await world.claim(item)).toMatchObject({ state: 'accepted' });
});
