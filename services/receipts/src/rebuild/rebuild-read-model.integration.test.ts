import type { Events } from '#contracts/events';
import { uuidText } from '#contracts/ids';
import { systemClock } from '#runtime/clock';
import { plans, Stage, tells, tokenOf, webhook, type Campaign, type Told } from '../../test-support/stage';
import { RebuildReadModel } from './rebuild-read-model';

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage?.close());

const DUE = 1_782_900_000_000;
const seconds = DUE / 1_000;
const at = (ms: number) => new Date(DUE + ms).toISOString();

interface Recorded {
  claim?: Record<string, unknown>;
  waiting?: { reason: string; since: string; wake_at: string; gives_up_at: string } & Record<string, unknown>;
  attempts?: Array<Record<string, unknown>>;
}

/** The sender's own rows, as they are after what it told. */
async function record(run: Campaign, position: number, { claim, waiting, attempts = [] }: Recorded): Promise<void> {
  const insert = (table: string, row: Record<string, unknown>) =>
    stage.sql.query(
      `INSERT INTO sender.${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
        .map((_, place) => `$${place + 1}`)
        .join(', ')})`,
      Object.values(row),
    );
  const message = {
    occurrence_id: run.occurrence(position),
    schedule_id: uuidText(run.scheduleId),
    number_id: uuidText(run.numberId),
  };
  const about = { ...message, revision: 1, position, priority: 5, due_at: at(0) };
  if (claim) await insert('claim', { ...about, ...(claim.attempt === 0 ? {} : { deadline: at(10_000) }), ...claim });
  if (waiting) await insert('waiting', { ...about, attempt: claim?.attempt ?? 0, ...waiting });
  for (const [index, attempt] of attempts.entries()) {
    const id = { occurrence_id: run.occurrence(position), attempt: index + 1 };
    await insert('attempt_begun', { ...id, begun_at: at(1), instance: 'test' });
    if (attempt.outcome) await insert('attempt_outcome', { ...id, applied: true, ...attempt });
  }
}

it('gives the same rows and counters from the record as the events gave', async () => {
  const run = await stage.campaign(1_000, { dueAt: DUE });
  const wamid = (position: number) => `wamid.${run.runId.toString('hex')}.${position}`;
  const said = (position: number, status: string, second: number, code?: number, attempt = 1): Told =>
    webhook([{ wamid: wamid(position), token: tokenOf(run, position, attempt), status, at: seconds + second, code }]);
  const accepted = (position: number) => ({
    outcome: 'accepted',
    called_at: at(480),
    ended_at: at(500),
    provider_message_id: wamid(position),
    waits: JSON.stringify([{ reason: 'pace', ms: 12 }]),
  });
  const acceptedClaim = (position: number, more: Record<string, unknown> = {}) => ({
    state: 'accepted',
    step: 2,
    attempt: 1,
    updated_at: at(500),
    called_at: at(480),
    provider_message_id: wamid(position),
    ...more,
  });
  const scenarios: Array<{ told: (position: number) => Told[]; recorded: (position: number) => Recorded }> = [
    {
      told: (p) => [tells.submitted(run, p, { wamid: wamid(p) }), said(p, 'sent', 2), said(p, 'delivered', 3)],
      recorded: (p) => ({ claim: acceptedClaim(p), attempts: [accepted(p)] }),
    },
    {
      told: (p) => [tells.submitted(run, p, { wamid: wamid(p) }), said(p, 'failed', 3, 131026)],
      recorded: (p) => ({ claim: acceptedClaim(p), attempts: [accepted(p)] }),
    },
    {
      told: (p) => [tells.retry(run, p), tells.submitted(run, p, { wamid: wamid(p), step: 4, attempt: 2 })],
      recorded: (p) => ({
        claim: acceptedClaim(p, { step: 4, attempt: 2 }),
        attempts: [
          {
            outcome: 'retry',
            called_at: at(390),
            ended_at: at(400),
            error_code: 'provider_unavailable',
            provider_code: '131016',
          },
          accepted(p),
        ],
      }),
    },
    {
      told: (p) => [tells.failed(run, p)],
      recorded: () => ({
        claim: { state: 'failed', step: 2, attempt: 1, updated_at: at(600), error_code: 'template_parameters' },
        attempts: [
          {
            outcome: 'failed',
            called_at: at(580),
            ended_at: at(600),
            error_code: 'template_parameters',
            provider_code: '132000',
            text: 'parameters',
          },
        ],
      }),
    },
    {
      told: (p) => [tells.retry(run, p)],
      recorded: () => ({
        claim: {
          state: 'retry_wait',
          step: 2,
          attempt: 1,
          updated_at: at(400),
          reason: 'retry',
          next_attempt_at: at(120_400),
          error_code: 'provider_unavailable',
        },
        waiting: { reason: 'retry', since: at(400), wake_at: at(120_400), gives_up_at: at(9_000_000) },
        attempts: [
          {
            outcome: 'retry',
            called_at: at(390),
            ended_at: at(400),
            error_code: 'provider_unavailable',
            provider_code: '131016',
          },
        ],
      }),
    },
    {
      told: (p) => [tells.uncertain(run, p)],
      recorded: () => ({
        claim: { state: 'uncertain', step: 2, attempt: 1, updated_at: at(700), sweep_at: at(900_700), reason: 'deadline' },
        attempts: [{ outcome: 'uncertain', called_at: at(680), ended_at: at(700), error_code: 'deadline' }],
      }),
    },
    {
      told: (p) => [tells.uncertain(run, p), tells.unconfirmed(run, p)],
      recorded: () => ({
        claim: { state: 'unconfirmed', step: 3, attempt: 1, updated_at: at(900_700), reason: 'deadline' },
        attempts: [{ outcome: 'uncertain', called_at: at(680), ended_at: at(700), error_code: 'deadline' }],
      }),
    },
    {
      told: (p) => [tells.refused(run, p, 'expired')],
      recorded: () => ({ claim: { state: 'expired', step: 1, attempt: 0, updated_at: at(200), reason: 'expired' } }),
    },
    // Only evidence: the sender died before it told anything, and its sweeper has not come by yet.
    {
      told: (p) => [said(p, 'sent', 4)],
      recorded: () => ({ claim: { state: 'sending', step: 1, attempt: 1, sweep_at: at(15_000) }, attempts: [{}] }),
    },
  ];
  const events: Told[] = [plans.planned(run)];
  for (let position = 0; position < 90; position++) {
    const { told, recorded } = scenarios[position % scenarios.length]!;
    events.push(...told(position));
    await record(run, position, recorded(position));
  }
  events.push(plans.range(run, 100, 900), plans.range(run, 50, 120, { status: 'expired', at: DUE + 1 }));
  const projection = stage.projection();
  for (let from = 0; from < events.length; from += 25)
    await projection.project([stage.batch('deliveries', 0, events.slice(from, from + 25))]);

  const rows = async () => (await stage.messages(run)).map(({ updated_at: _, ...row }) => row);
  const before = { rows: await rows(), counts: await stage.counts(run) };
  expect(before.rows).toHaveLength(90);
  expect(before.counts).toEqual({
    delivered: 10,
    'failed/recipient_unreachable': 10,
    submitted: 10,
    'failed/template_parameters': 10,
    'waiting/retry': 10,
    'uncertain/deadline': 10,
    unconfirmed: 10,
    'expired/expired': 10 + 70 - 35,
    'cancelled/cancelled': 780,
  });

  const rebuild = new RebuildReadModel(stage.database, systemClock);
  await stage.sql.query('DELETE FROM receipts.message');
  await stage.sql.query('UPDATE receipts.run_count SET count = count + 1000');
  await stage.sql.query('DELETE FROM receipts.answered_chunk');
  expect(await rebuild.rebuild()).toEqual({ runs: 1, messages: 90 });
  expect(await rows()).toEqual(before.rows);
  expect(await stage.counts(run)).toEqual(before.counts);

  // Over rows that are there, and right: nothing changes; and the projection goes on from them.
  await rebuild.rebuild();
  expect(await rows()).toEqual(before.rows);
  await stage.takeOutbox();
  await projection.project([stage.batch('deliveries', 0, events)]);
  expect(await rows()).toEqual(before.rows);
  await projection.project([stage.batch('deliveries', 0, [said(2, 'delivered', 9, undefined, 2)])]);
  expect(await stage.counts(run)).toEqual({ ...before.counts, delivered: 11, submitted: 9 });
});

it('keeps the revision and the due time that a message was held or claimed under, whatever its run was revised to', async () => {
  const run = await stage.campaign(6, { dueAt: DUE });
  const planned = plans.planned(run);
  const revised = { ...plans.planned(run, { revision: 2 }) } as Extract<Told, { name: 'RunPlanned' }>;
  revised.event = { ...revised.event, dueAt: DUE + 3_600_000 };
  const held = (position: number, more: Partial<Events['MessageHeld']>): Told => {
    const told = tells.held(run, position) as Extract<Told, { name: 'MessageHeld' }>;
    return { ...told, event: { ...told.event, ...more } };
  };
  const waits = { reason: 'paused', since: at(100), gives_up_at: at(1_000_100) };
  await record(run, 0, { claim: { state: 'expired', step: 1, attempt: 0, updated_at: at(200), reason: 'expired' } });
  await record(run, 1, { waiting: { ...waits, wake_at: at(1_000_100) } });
  await record(run, 2, { waiting: { ...waits, valid_until: at(500_000), wake_at: at(500_000) } });
  await record(run, 3, { waiting: { ...waits, reason: 'circuit', wake_at: at(60_000), revision: 2, due_at: at(50) } });
  await record(run, 4, { waiting: { ...waits, reason: 'not_yet', wake_at: at(50) } });
  const projection = stage.projection();
  const events = [
    planned,
    tells.refused(run, 0, 'expired'),
    held(1, {}),
    held(2, {}),
    held(3, { reason: 'circuit', until: DUE + 60_000, revision: 2, dueAt: DUE + 50 }),
    revised,
  ];
  await projection.project([stage.batch('deliveries', 1, events)]);
  const rows = async () => (await stage.messages(run)).map(({ updated_at: _, ...row }) => row);
  const before = { rows: await rows(), counts: await stage.counts(run) };
  expect(before.rows.map(({ revision }) => revision).sort()).toEqual([1, 1, 1, 2]);
  expect(before.counts).toEqual({ 'expired/expired': 1, 'waiting/circuit': 1, 'waiting/paused': 2 });

  await stage.sql.query('DELETE FROM receipts.message');
  await new RebuildReadModel(stage.database, systemClock).rebuild();
  expect(await rows()).toEqual(before.rows);
  expect(await stage.counts(run)).toEqual(before.counts);
});

it('gives an instant the same millisecond that the sender told, though its database keeps microseconds', async () => {
  const run = await stage.campaign(200, { dueAt: DUE });
  await stage.sql.query(
    `
    INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, state, reason, step, updated_at)
    SELECT $1::bytea || int8send(place), $2, $3, 1, place, 5, 0, to_timestamp($4), 'expired', 'expired', 1,
      to_timestamp($4) + (place * 1000 + 480 + place % 41) * interval '1 microsecond'
    FROM generate_series(0, 199) AS place`,
    [run.runId, uuidText(run.scheduleId), uuidText(run.numberId), DUE / 1_000],
  );
  await stage.projection().project([stage.batch('deliveries', 2, [plans.planned(run)])]);
  await new RebuildReadModel(stage.database, systemClock).rebuild();
  const { rows } = await stage.sql.query(
    `SELECT (m.facts -> 'own' ->> 'at')::bigint AS rebuilt, sender.ms(c.updated_at) AS told
     FROM receipts.message AS m JOIN sender.claim AS c USING (occurrence_id) WHERE c.schedule_id = $1`,
    [uuidText(run.scheduleId)],
  );
  expect(rows).toHaveLength(200);
  expect(rows.map(({ rebuilt }) => rebuilt as string)).toEqual(rows.map(({ told }) => told as string));
});

it('shows when we heard what a provider tells of 1970 or 5138, in whatever order it comes and comes again, also after a rebuild', async () => {
  const heard = DUE + 5_000;
  const year5138 = 99_999_999_999;
  // The clock of the sender and its answers: accepted at DUE + 500, called 20 ms before.
  const tell = async (run: Campaign, order: number[]) => {
    const lines = (position: number, status: string, second: number, after: number, code?: number): Told =>
      webhook([{ token: tokenOf(run, position), status, at: second, code }], heard + after);
    const events = [
      plans.planned(run),
      tells.submitted(run, 0, { wamid: 'wamid.wrong' }),
      lines(0, 'sent', 1, 0),
      lines(0, 'delivered', year5138, 1_000),
      lines(0, 'delivered', year5138, 900_000),
      lines(0, 'sent', 1, 900_000),
      tells.submitted(run, 1, { wamid: 'wamid.failed' }),
      lines(1, 'failed', 1, 2_000, 131026),
      lines(1, 'failed', 1, 600_000, 131026),
      tells.submitted(run, 2, { wamid: 'wamid.late' }),
      lines(2, 'delivered', seconds + 1, 86_400_000),
    ];
    for (const [partition, place] of order.entries())
      await stage.projection().project([stage.batch(`order-${run.runId.toString('hex')}`, partition, [events[place]!])]);
  };
  const shownOf = async (run: Campaign) =>
    (await stage.messages(run))
      .sort((a, b) => Number(a.position) - Number(b.position))
      .map(({ sent_at, delivered_at, failed_at, error_at }) => ({ sent_at, delivered_at, failed_at, error_at }));
  const nothing = { sent_at: null, delivered_at: null, failed_at: null, error_at: null };
  const expected = [
    { ...nothing, sent_at: new Date(heard), delivered_at: new Date(heard + 1_000) },
    { ...nothing, failed_at: new Date(heard + 2_000), error_at: new Date(heard + 2_000) },
    { ...nothing, delivered_at: new Date(DUE + 1_000) },
  ];
  const inOrder = Array.from({ length: 11 }, (_, place) => place);
  for (const order of [inOrder, [...inOrder].reverse(), [5, 1, 3, 9, 0, 7, 8, 2, 10, 4, 6]]) {
    const run = await stage.campaign(3, { dueAt: DUE });
    for (let position = 0; position < 3; position++) {
      await record(run, position, {
        claim: { state: 'accepted', step: 2, attempt: 1, updated_at: at(500), called_at: at(480) },
        attempts: [{ outcome: 'accepted', called_at: at(480), ended_at: at(500) }],
      });
    }
    await tell(run, order);
    expect(await shownOf(run)).toEqual(expected);
    const { rows } = await stage.sql.query(
      "SELECT DISTINCT extract(year FROM provider_at AT TIME ZONE 'UTC')::int AS year FROM receipts.evidence_public WHERE substring(occurrence_id FROM 1 FOR 12) = $1 ORDER BY 1",
      [run.runId],
    );
    expect(rows.map(({ year }) => year as number)).toEqual([1970, 2026, 5138]);
    await stage.sql.query('DELETE FROM receipts.message');
    await new RebuildReadModel(stage.database, systemClock).rebuild();
    expect(await shownOf(run)).toEqual(expected);
  }
});
