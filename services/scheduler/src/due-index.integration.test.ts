import { silentLog } from '#runtime/log';
import { SettleUnanswered } from './settle-unanswered';
import { Sweep } from './sweep';
import { LIMITS, Stage } from '../test-support/stage';

let stage: Stage;
const DAY_MS = 86_400_000;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(() => stage?.close());

/** Rows that one look reads in all tables, by PostgreSQL's own count. */
async function rowsReadByOneLook(): Promise<number> {
  await stage.sql.query('BEGIN');
  try {
    const { rows: before } = await stage.sql.query<{ read: number }>(ROWS_READ);
    await stage.sql.query('SELECT * FROM scheduler.pick_slices($1, $2, $3, $4, $5, $6, $7, $8)', [
      'look',
      LIMITS.leaseMs,
      LIMITS.creditAgeMs,
      LIMITS.wake,
      LIMITS.numbers,
      LIMITS.runs,
      LIMITS.records,
      LIMITS.lookAheadMs,
    ]);
    const { rows: after } = await stage.sql.query<{ read: number }>(ROWS_READ);
    return after[0]!.read - before[0]!.read;
  } finally {
    await stage.sql.query('ROLLBACK');
  }
}
const ROWS_READ = `SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int AS read FROM pg_stat_xact_all_tables
  WHERE schemaname IN ('scheduler', 'sender', 'api')`;

async function addFuture(count: number, dueInMs: number): Promise<void> {
  await stage.sql.query(
    'SELECT scheduler.ensure_due_partitions(ARRAY[(now() + $1::bigint * interval $$1 ms$$)::date, (now() + ($1::bigint + 60000) * interval $$1 ms$$)::date])',
    [dueInMs],
  );
  await stage.sql.query(
    `INSERT INTO scheduler.due_entry (due_at, run_id, revision)
     SELECT now() + ($2::bigint + g) * interval '1 ms', decode(lpad(to_hex($2::bigint * 100000 + g), 24, '0'), 'hex'), 1 FROM generate_series(1, $1) AS g`,
    [count, dueInMs],
  );
}

it('reads the same few rows at each look, whether ten schedules wait or sixty thousand', async () => {
  const number = stage.number();
  await stage.reportCredit([number], 100);
  await addFuture(10, 600_000);
  const withTen = await rowsReadByOneLook();
  await addFuture(20_000, 700_000);
  await addFuture(20_000, 3 * DAY_MS);
  await addFuture(20_000, 400 * DAY_MS);
  expect(await rowsReadByOneLook()).toBe(withTen);
  expect(withTen).toBeLessThan(5);
  // Twin: the count does rise with what is due.
  const due = await stage.campaigns(Array.from({ length: 20 }, () => ({ number })));
  await stage.plan(...due);
  expect(await rowsReadByOneLook()).toBeGreaterThan(withTen + 20);
});

it('keeps one entry for a run of any size, and none once it is due', async () => {
  const number = stage.number();
  const campaign = await stage.campaign({ number, recipients: 12_000, dueAt: Date.now() + 2 * DAY_MS });
  await stage.plan(campaign);
  const entries = async () =>
    (
      await stage.sql.query('SELECT tableoid::regclass::text AS partition, due_at FROM scheduler.due_entry WHERE run_id = $1', [
        campaign.runId,
      ])
    ).rows;
  const day = new Date(campaign.event.slots[0]!.dueAt).toISOString().slice(0, 10).replaceAll('-', '');
  expect(await entries()).toMatchObject([{ partition: `scheduler.due_entry_${day}` }]);
});

it('makes partitions ahead and drops those of days that are over, once they are empty', async () => {
  const sweep = new Sweep(
    stage.database,
    new SettleUnanswered(stage.database, { creditAgeMs: 5_000, checkAfterMs: 60_000 }, silentLog),
    { checkAfterMs: 60_000, holdGiveUpMs: 604_800_000, lookAgainMs: 0, runRetentionMs: DAY_MS, page: 500 },
    silentLog,
  );
  const partitions = async () =>
    (
      await stage.sql.query<{ name: string }>(
        `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'scheduler.due_entry'::regclass`,
      )
    ).rows.map(({ name }) => name);
  const nameOf = (ms: number) => `scheduler.due_entry_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`;
  const [empty, full] = [Date.now() - 5 * DAY_MS, Date.now() - 4 * DAY_MS];
  await addFuture(0, -5 * DAY_MS);
  await addFuture(3, -4 * DAY_MS);
  await sweep.tidyOnce(Date.now());
  expect(await partitions()).not.toContain(nameOf(empty));
  expect(await partitions()).toEqual(expect.arrayContaining([nameOf(full), nameOf(Date.now()), nameOf(Date.now() + 2 * DAY_MS)]));
  await stage.releaser().releaseOnce();
  await sweep.tidyOnce(Date.now());
  expect(await partitions()).not.toContain(nameOf(full));
});

it('forgets runs that ended longer ago than they are kept', async () => {
  const campaign = await stage.campaign();
  const kept = await stage.campaign();
  await stage.plan(campaign, kept);
  await stage
    .planner()
    .planBatch(
      stage.batch(
        { name: 'ScheduleCancelled', event: stage.changeOf(campaign, 2) },
        { name: 'ScheduleCancelled', event: stage.changeOf(kept, 2) },
      ),
    );
  await stage.sql.query(`UPDATE scheduler.run SET changed_at = now() - interval '2 days' WHERE run_id = $1`, [campaign.runId]);
  const sweep = new Sweep(
    stage.database,
    new SettleUnanswered(stage.database, { creditAgeMs: 5_000, checkAfterMs: 60_000 }, silentLog),
    { checkAfterMs: 60_000, holdGiveUpMs: 604_800_000, lookAgainMs: 0, runRetentionMs: DAY_MS, page: 500 },
    silentLog,
  );
  await sweep.tidyOnce(Date.now());
  expect(await stage.run(campaign)).toBeUndefined();
  expect(await stage.run(kept)).toMatchObject({ status: 'ended' });
});
