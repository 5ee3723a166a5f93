import { waitUntil } from '#runtime/wait-until';
import { plans, Stage, tells, tokenOf, webhook, type Campaign, type Told } from '../../test-support/stage';
import type { ReadBatch } from './items';

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage?.close());
beforeEach(() => stage.takeOutbox());

const DUE = 1_782_900_000_000;
const seconds = DUE / 1_000;
const named = <N extends Told['name']>(told: Told[], name: N) =>
  told
    .filter((one): one is Extract<Told, { name: N }> => one.name === name)
    .map(({ event }) => event as Extract<Told, { name: N }>['event']);

const sent = (run: Campaign, position: number, second = 2) => ({
  wamid: `wamid.${run.runId.toString('hex')}.${position}`,
  token: tokenOf(run, position),
  status: 'sent',
  at: seconds + second,
});
const wamid = (run: Campaign, position: number) => `wamid.${run.runId.toString('hex')}.${position}`;
const positions = (count: number) => Array.from({ length: count }, (_, position) => position);

describe('a batch that comes again', () => {
  it('adds nothing, on the same instance and on two at once', async () => {
    const run = await stage.campaign(200, { dueAt: DUE });
    const isOpen = (position: number) => position >= 100 && position < 150;
    await stage.projection().project([stage.batch('runs', 1, [plans.planned(run)])]);
    const batches: ReadBatch[] = [
      stage.batch(
        'deliveries',
        1,
        positions(200).map((position) =>
          isOpen(position) ? tells.uncertain(run, position) : tells.submitted(run, position, { wamid: wamid(run, position) }),
        ),
      ),
      stage.batch(
        'webhooks',
        1,
        positions(150).map((position) => webhook([sent(run, position)])),
      ),
    ];
    const instances = [stage.projection(), stage.projection(), stage.projection()];
    await Promise.all(instances.map((instance) => instance.project(batches)));
    await instances[0]!.project(batches);
    expect(await stage.counts(run)).toEqual({ sent: 150, submitted: 50 });
    const told = await stage.takeOutbox();
    expect(named(told, 'MessageStatusChanged')).toHaveLength(200);
    // Of those whose outcome the sender does not know: the others are accepted, which no evidence changes at the gate.
    expect(named(told, 'ReceiptRecorded')).toHaveLength(50);
    expect(named(told, 'RunCompleted')).toHaveLength(1);
  });

  it('adds nothing even where the offsets are lost: the rows themselves know', async () => {
    const run = await stage.campaign(20, { dueAt: DUE });
    const batch = stage.batch('deliveries', 2, [
      plans.planned(run),
      ...positions(20).map((position) => tells.submitted(run, position)),
    ]);
    await stage.projection().project([batch]);
    const before = { rows: await stage.messages(run), told: (await stage.takeOutbox()).length };
    await stage.sql.query(`UPDATE receipts.projector_offset SET next_offset = 0, newest_at = '-infinity'`);
    await stage.projection().project([batch]);
    expect(await stage.messages(run)).toEqual(before.rows);
    expect(await stage.counts(run)).toEqual({ submitted: 20 });
    expect(before.told).toBeGreaterThan(20);
    expect(await stage.takeOutbox()).toEqual([]);
  });

  it('is no obstacle to a topic that was made anew and starts at 0 again', async () => {
    const run = await stage.campaign(2, { dueAt: DUE });
    const projection = stage.projection();
    const first = stage.batch('deliveries', 3, [plans.planned(run), tells.submitted(run, 0)]);
    await projection.project([first]);
    const again: ReadBatch = stage.batch('again', 0, [tells.submitted(run, 1)], Date.now() + 1_000);
    await projection.project([{ ...again, topic: 'deliveries', partition: 3 }]);
    expect(await stage.counts(run)).toEqual({ submitted: 2 });
  });
});

it('keeps rows and counters right when instances bring facts of the same messages at the same time, in any order', async () => {
  const run = await stage.campaign(300, { dueAt: DUE });
  const facts: Told[] = positions(300).flatMap((position) => {
    const id = { wamid: wamid(run, position), token: tokenOf(run, position) };
    const said = (status: string, second: number, code?: number) => webhook([{ ...id, status, at: seconds + second, code }]);
    return [
      [tells.held(run, position), tells.submitted(run, position, id), said('sent', 2), said('delivered', 3)],
      [tells.submitted(run, position, id), said('sent', 2), said('failed', 3, 131026), said('sent', 4)],
      [tells.uncertain(run, position), said('sent', 2), said('read', 5)],
      [tells.retry(run, position), tells.submitted(run, position, { ...id, step: 4, attempt: 2 }), said('failed', 2, 131049)],
      [tells.retry(run, position), tells.failed(run, position, { step: 4, attempt: 2 })],
      [tells.refused(run, position, 'expired')],
    ][position % 6]!;
  });
  // A plain shuffle by a hash of the place: the same on every run.
  const shuffled = facts
    .map((fact, place) => ({ fact, rank: (place * 7_919) % 10_007 }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ fact }) => fact);
  const half = Math.ceil(shuffled.length / 2);
  const instances = [stage.projection(), stage.projection()];
  const work = async (instance: (typeof instances)[number], partition: number, list: Told[]) => {
    for (let from = 0; from < list.length; from += 37)
      await instance.project([stage.batch('deliveries', partition, list.slice(from, from + 37))]);
  };
  await Promise.all([
    work(instances[0]!, 10, [...shuffled.slice(0, half), plans.planned(run)]),
    work(instances[1]!, 11, shuffled.slice(half)),
    work(instances[0]!, 12, [...shuffled].reverse()),
  ]);
  expect(await stage.counts(run)).toEqual({
    delivered: 50,
    'failed/recipient_unreachable': 50,
    read: 50,
    submitted: 50,
    'failed/template_parameters': 50,
    'expired/expired': 50,
  });
  expect(await stage.recount(run)).toEqual(await stage.counts(run));
  const told = await stage.takeOutbox();
  const last = new Map<string, { sequence: number; status: string }>();
  for (const event of named(told, 'MessageStatusChanged')) {
    const known = last.get(event.messageId);
    if (!known || event.sequence > known.sequence) last.set(event.messageId, event);
  }
  const byStatus: Record<string, number> = {};
  for (const { status } of last.values()) byStatus[status] = (byStatus[status] ?? 0) + 1;
  expect(byStatus).toEqual({ delivered: 50, failed: 100, read: 50, submitted: 50, expired: 50 });
  expect(named(told, 'RunCompleted').at(-1)).toMatchObject({ total: 300, outcome: 'partly_failed' });
});

it('merges with a row that another instance inserts while it is about to insert the same', async () => {
  const run = await stage.campaign(1, { dueAt: DUE });
  const projection = stage.projection();
  await projection.project([stage.batch('runs', 9, [plans.planned(run)])]);
  const other = await stage.database.pool.connect();
  await other.query('BEGIN');
  await other.query(`INSERT INTO receipts.message (occurrence_id, updated_at, status, facts) VALUES ($1, now(), 'sent', $2)`, [
    run.occurrence(0),
    JSON.stringify({ attempts: 1, sentAt: DUE + 2_000, passedOn: [1], sequence: 1 }),
  ]);
  const projected = projection.project([stage.batch('deliveries', 9, [tells.submitted(run, 0)])]);
  await waitUntil('the projection to wait for the other', async () => {
    const { rowCount } = await stage.sql.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  });
  await other.query('COMMIT');
  other.release();
  await projected;
  expect(await stage.counts(run)).toEqual({ sent: 1 });
  expect(await stage.messages(run)).toMatchObject([{ status: 'sent', position: 0, submitted_at: new Date(DUE + 500) }]);
});

describe('evidence that names the provider’s id only', () => {
  const nameless = (run: Campaign, position: number, status = 'delivered') =>
    webhook([{ wamid: wamid(run, position), status, at: seconds + 9 }]);

  it('finds its message when that is known already', async () => {
    const run = await stage.campaign(1, { dueAt: DUE });
    const projection = stage.projection();
    await projection.project([
      stage.batch('deliveries', 4, [plans.planned(run), tells.submitted(run, 0, { wamid: wamid(run, 0) })]),
    ]);
    await projection.project([stage.batch('webhooks', 4, [nameless(run, 0)])]);
    expect(await stage.counts(run)).toEqual({ delivered: 1 });
  });

  it('is parked until a sender, or other evidence, says whose id it is', async () => {
    const run = await stage.campaign(2, { dueAt: DUE });
    const projection = stage.projection();
    await projection.project([stage.batch('webhooks', 4, [nameless(run, 0, 'sent'), nameless(run, 0), nameless(run, 1)])]);
    const parked = () => stage.sql.query('SELECT 1 FROM receipts.provider_message WHERE parked IS NOT NULL');
    expect((await parked()).rowCount).toBe(2);
    await projection.project([
      stage.batch('deliveries', 4, [plans.planned(run), tells.submitted(run, 0, { wamid: wamid(run, 0) })]),
    ]);
    expect(await stage.counts(run)).toEqual({ delivered: 1 });
    await projection.project([stage.batch('deliveries', 4, [tells.uncertain(run, 1)])]);
    expect(await stage.counts(run)).toEqual({ delivered: 1, 'uncertain/deadline': 1 });
    await projection.project([stage.batch('webhooks', 4, [webhook([sent(run, 1)])])]);
    expect(await stage.counts(run)).toEqual({ delivered: 2 });
    expect((await parked()).rowCount).toBe(0);
    const receipts = named(await stage.takeOutbox(), 'ReceiptRecorded');
    expect(receipts.map(({ occurrenceId }) => occurrenceId)).toEqual([run.occurrence(1), run.occurrence(1)]);
  });

  it('is not missed when both come at the same moment, on two instances', async () => {
    const run = await stage.campaign(400, { dueAt: DUE });
    const instances = [stage.projection(), stage.projection()];
    await instances[0]!.project([stage.batch('runs', 4, [plans.planned(run)])]);
    // Each side in an order of its own, so that the two meet on many ids.
    for (let from = 0; from < 400; from += 50) {
      const chunk = positions(50).map((place) => from + place);
      await Promise.all([
        instances[0]!.project([
          stage.batch(
            'deliveries',
            5,
            chunk.map((position) => tells.submitted(run, position, { wamid: wamid(run, position) })),
          ),
        ]),
        instances[1]!.project([
          stage.batch(
            'webhooks',
            5,
            [...chunk].reverse().map((position) => nameless(run, position)),
          ),
        ]),
      ]);
    }
    expect(await stage.counts(run)).toEqual({ delivered: 400 });
    expect(await stage.recount(run)).toEqual({ delivered: 400 });
  });
});

describe('ranges of recipients that were never released', () => {
  it('rank below every fact about a message, whichever came first', async () => {
    const run = await stage.campaign(1_000, { dueAt: DUE });
    const projection = stage.projection();
    const deliveries = (list: Told[]) => projection.project([stage.batch('deliveries', 6, list)]);
    await deliveries([plans.planned(run), ...positions(100).map((position) => tells.submitted(run, position))]);
    await deliveries([plans.range(run, 90, 1_000)]);
    expect(await stage.counts(run)).toEqual({ submitted: 100, 'cancelled/cancelled': 900 });
    // A record that was under way when the rest was cancelled.
    await deliveries([tells.submitted(run, 700), tells.refused(run, 701, 'expired')]);
    expect(await stage.counts(run)).toEqual({ submitted: 101, 'expired/expired': 1, 'cancelled/cancelled': 898 });
    await deliveries([plans.range(run, 90, 1_000)]);
    expect(await stage.counts(run)).toEqual({ submitted: 101, 'expired/expired': 1, 'cancelled/cancelled': 898 });
    const completed = named(await stage.takeOutbox(), 'RunCompleted');
    expect(completed.map(({ outcome, status, correction }) => [outcome, status, correction])).toEqual([
      ['succeeded', 'cancelled', false],
      ['partly_failed', 'cancelled', true],
    ]);
    expect(Object.values(completed.at(-1)!.counts).reduce((sum, count) => sum + count)).toBe(1_000);
  });

  it('count what they say, while the claims that they leave out have not reported yet', async () => {
    const run = await stage.campaign(600, { dueAt: DUE });
    const projection = stage.projection();
    await projection.project([stage.batch('deliveries', 6, [plans.planned(run), plans.range(run, 0, 600, { count: 598 })])]);
    expect(await stage.counts(run)).toEqual({ 'cancelled/cancelled': 598 });
    expect(named(await stage.takeOutbox(), 'RunCompleted')).toEqual([]);
    await projection.project([stage.batch('deliveries', 6, [tells.submitted(run, 1), tells.submitted(run, 555)])]);
    expect(await stage.counts(run)).toEqual({ submitted: 2, 'cancelled/cancelled': 598 });
    expect(named(await stage.takeOutbox(), 'RunCompleted')).toHaveLength(1);
  });

  it('are taken back by a newer revision, in either order', async () => {
    for (const late of [false, true]) {
      const run = await stage.campaign(600, { dueAt: DUE });
      const projection = stage.projection();
      const expired = plans.range(run, 0, 600, { status: 'expired' });
      const told = [
        plans.planned(run),
        ...(late ? [] : [expired]),
        plans.planned(run, { revision: 2 }),
        ...(late ? [expired] : []),
      ];
      for (const one of told) await projection.project([stage.batch('runs', 6, [one])]);
      expect(await stage.counts(run)).toEqual({});
      const { rows } = await stage.sql.query('SELECT completed_at FROM receipts.run_public WHERE run_id = $1', [run.runId]);
      expect(rows).toEqual([{ completed_at: null }]);
      expect((await stage.sql.query('SELECT 1 FROM receipts.range_public WHERE run_id = $1', [run.runId])).rowCount).toBe(0);
      await projection.project([stage.batch('runs', 6, [plans.range(run, 0, 600, { status: 'cancelled', revision: 2 })])]);
      expect(await stage.counts(run)).toEqual({ 'cancelled/cancelled': 600 });
    }
  });

  it('count no position twice where they overlap', async () => {
    const run = await stage.campaign(1_200, { dueAt: DUE });
    const projection = stage.projection();
    const batches = [
      [plans.planned(run), tells.submitted(run, 3), tells.submitted(run, 650)],
      [plans.range(run, 0, 500, { status: 'expired', at: DUE + 1 })],
      [plans.range(run, 0, 1_200, { at: DUE + 2 }), plans.range(run, 600, 700, { status: 'expired', at: DUE + 3 })],
      [tells.submitted(run, 4), tells.submitted(run, 1_100)],
    ];
    for (const list of batches) await projection.project([stage.batch('runs', 6, list)]);
    expect(await stage.counts(run)).toEqual({ submitted: 4, 'expired/expired': 498, 'cancelled/cancelled': 698 });
  });
});

it('tells messages that were known before the plan of their run as soon as that is known', async () => {
  const run = await stage.campaign(3, { dueAt: DUE });
  const projection = stage.projection();
  await projection.project([stage.batch('deliveries', 7, [tells.submitted(run, 0), tells.submitted(run, 1)])]);
  expect(named(await stage.takeOutbox(), 'MessageStatusChanged')).toEqual([]);
  await projection.project([
    stage.batch('runs', 7, [plans.planned(run)]),
    stage.batch('deliveries', 7, [tells.submitted(run, 2)]),
  ]);
  const told = named(await stage.takeOutbox(), 'MessageStatusChanged');
  expect(told.map(({ ref, status, labels }) => [ref, status, labels.campaign]).sort()).toEqual([
    ['customer-0', 'submitted', 'summer'],
    ['customer-1', 'submitted', 'summer'],
    ['customer-2', 'submitted', 'summer'],
  ]);
});

it('tells nothing of a message of which only evidence is known, until its sender speaks', async () => {
  const run = await stage.campaign(1, { dueAt: DUE });
  const projection = stage.projection();
  await projection.project([stage.batch('runs', 7, [plans.planned(run), webhook([sent(run, 0)])])]);
  expect(await stage.counts(run)).toEqual({});
  expect(named(await stage.takeOutbox(), 'MessageStatusChanged')).toEqual([]);
  await projection.project([stage.batch('deliveries', 7, [tells.submitted(run, 0)])]);
  expect(await stage.counts(run)).toEqual({ sent: 1 });
  expect(named(await stage.takeOutbox(), 'MessageStatusChanged')).toMatchObject([
    { status: 'sent', previousStatus: null, ref: 'customer-0' },
  ]);
});

it('tells a change once with its last state, and says when it corrects a final one', async () => {
  const run = await stage.campaign(1, { dueAt: DUE });
  const projection = stage.projection();
  const token = tokenOf(run, 0);
  await projection.project([
    stage.batch('deliveries', 7, [
      plans.planned(run),
      tells.held(run, 0),
      tells.submitted(run, 0),
      webhook([sent(run, 0), { token, status: 'failed', at: seconds + 3, code: 131026 }]),
    ]),
  ]);
  await projection.project([stage.batch('webhooks', 7, [webhook([{ token, status: 'delivered', at: seconds + 4 }])])]);
  const told = await stage.takeOutbox();
  expect(
    named(told, 'MessageStatusChanged').map(({ previousStatus, status, correction, error }) => [
      previousStatus,
      status,
      correction,
      error?.code,
    ]),
  ).toEqual([
    [null, 'failed', false, 'recipient_unreachable'],
    ['failed', 'delivered', true, undefined],
  ]);
  expect(named(told, 'RunCompleted').map(({ outcome, correction }) => [outcome, correction])).toEqual([
    ['failed', false],
    ['succeeded', true],
  ]);
});

it('tells that a run is held, and that the hold is over, once each', async () => {
  const run = await stage.campaign(1, { dueAt: DUE });
  const projection = stage.projection();
  await projection.project([stage.batch('deliveries', 8, [plans.planned(run), plans.held(run)])]);
  await projection.project([stage.batch('deliveries', 8, [plans.held(run)])]);
  await projection.project([stage.batch('schedules', 8, [plans.resumed(run)])]);
  // A hold from before the resume, told late.
  await projection.project([stage.batch('deliveries', 8, [plans.held(run, DUE + 40)])]);
  const told = await stage.takeOutbox();
  expect(told.map(({ name }) => name)).toEqual(['ScheduleHeld', 'ScheduleHoldEnded']);
  expect(named(told, 'ScheduleHeld')).toMatchObject([{ reason: 'template', sequence: 1, since: DUE + 50 }]);
  expect(named(told, 'ScheduleHoldEnded')).toMatchObject([{ reason: 'template', sequence: 2 }]);
});

it('tells progress when asked, and what nobody heard of again as final after the evidence window', async () => {
  const run = await stage.campaign(3, { dueAt: DUE });
  const projection = stage.projection();
  const told = stage.toldRuns();
  while ((await told.tellProgressOnce()).told > 0);
  await stage.takeOutbox();
  await projection.project([
    stage.batch('deliveries', 9, [plans.planned(run), tells.submitted(run, 0), tells.submitted(run, 1)]),
  ]);
  await stage.takeOutbox();
  expect(await told.tellProgressOnce()).toEqual({ told: 1, more: false });
  expect((await told.tellProgressOnce()).told).toBe(0);
  expect(named(await stage.takeOutbox(), 'RunProgressed')).toMatchObject([
    { status: 'running', total: 3, counts: { submitted: 2, scheduled: 1 } },
  ]);

  await projection.project([
    stage.batch('deliveries', 9, [
      tells.submitted(run, 2),
      webhook([{ token: tokenOf(run, 1), status: 'delivered', at: seconds + 4 }]),
    ]),
  ]);
  await stage.sql.query(`UPDATE receipts.run SET evidence_ends_at = NULL WHERE run_id <> $1`, [run.runId]);
  await stage.takeOutbox();
  expect((await told.tellFinalOnce()).told).toBe(0);
  await stage.sql.query(`UPDATE receipts.run SET evidence_ends_at = now() WHERE run_id = $1`, [run.runId]);
  expect(await told.tellFinalOnce()).toEqual({ told: 2, more: false });
  expect((await told.tellFinalOnce()).told).toBe(0);
  const final = named(await stage.takeOutbox(), 'MessageStatusChanged');
  expect(final.map(({ ref, status, final: isFinal }) => [ref, status, isFinal]).sort()).toEqual([
    ['customer-0', 'submitted', true],
    ['customer-2', 'submitted', true],
  ]);
});
