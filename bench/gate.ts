import { randomBytes, randomUUID } from 'node:crypto';
import { bucketOf, occurrenceId, runId, uuidBytes } from '#contracts/ids';
import type { Database } from '#runtime/postgres/database';
import { openDatabase } from '#runtime/postgres/open-database';
import { statement } from '#runtime/postgres/sql-file';
import { PostgresGate } from '../services/sender/src/postgres/gate';
import type { DueItem } from '../services/sender/src/postgres/gate-port';
import { createTestDatabase } from '../test-support/isolation';

/**
 * Claims a second through the gate, with older claims present, beside a bare `INSERT ... unnest` of the same ids with the same
 * driver; and how long a change of the schedule waits while its gate is busiest.
 * DATABASE_URL, GATE_BENCH_ROWS (older claims), GATE_BENCH_SECONDS, GATE_BENCH_CONNECTIONS, GATE_BENCH_BATCH.
 */
const number = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise);
const ROWS = number('GATE_BENCH_ROWS', 10_000_000);
const SECONDS = number('GATE_BENCH_SECONDS', 5);
const CONNECTIONS = number('GATE_BENCH_CONNECTIONS', 4);
const BATCH = number('GATE_BENCH_BATCH', 200);
const DAYS = 30;

const CHANGE_GATE = statement('change-gate', 'SELECT sender.change_gate($1, $2, $3, $4)');
const BARE = statement(
  'bare-insert',
  `INSERT INTO public.bare (occurrence_id, schedule_id, revision, number_id, due_at, priority, position, at, state)
   SELECT u.*, clock_timestamp(), 'sending'
   FROM unnest($1::bytea[], $2::uuid[], $3::int[], $4::uuid[], $5::float8[], $6::smallint[], $7::int[]) AS u
   ON CONFLICT DO NOTHING`,
);
const OLDER = statement(
  'older-claims',
  `INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, deadline, called_at, state,
     provider_message_id)
   SELECT substring(int8send($1::bigint) FROM 5 FOR 4) || substring(sha256(int8send(i / 10000)) FROM 1 FOR 8)
       || substring(sha256(int8send(i)) FROM 1 FOR 8),
     $2, $2, 1, i, 5, 1, now(), now(), now(), 'accepted', 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QjhDRjQyRjlDMDQ4RkRBNQA='
   FROM generate_series($3::int, $4::int) AS i`,
);

interface Rate {
  perSecond: number;
  p50: number;
  p99: number;
}

async function main(): Promise<void> {
  const test = await createTestDatabase();
  const admin = await openDatabase({ url: test.adminUrl, name: 'bench-admin', max: CONNECTIONS + 1, statementTimeoutMs: 600_000 });
  const sender = await openDatabase({ url: test.urlFor('punctual_sender'), name: 'bench-sender', max: CONNECTIONS });
  const api = await openDatabase({ url: test.urlFor('punctual_api'), name: 'bench-api', max: 2 });
  try {
    const today = bucketOf(Date.now());
    for (let day = today - DAYS; day < today - 1; day++) {
      for (const table of ['claim', 'attempt_begun', 'attempt_outcome', 'evidence'])
        await admin.rows(statement('partition', 'SELECT sender.ensure_day_partition($1, $2, $3)'), [table, day, '']);
    }
    const loaded = await loadOlderClaims(admin, today);
    const schedule = await openSchedule(api);

    await admin.pool.query(
      `CREATE TABLE public.bare (occurrence_id bytea PRIMARY KEY, schedule_id uuid, revision int, number_id uuid, due_at float8,
         priority smallint, position int, at timestamptz, state text)`,
    );
    await loop(() => bareInsert(admin, items(schedule)), 1);
    const bare = await loop(() => bareInsert(admin, items(schedule)), SECONDS);

    const gate = new PostgresGate(sender);
    const claim = async () => {
      const verdicts = await gate.decide(items(schedule), { instance: 'bench', deadlineMs: 10_000 });
      return verdicts.filter((verdict) => verdict.kind === 'claimed').length;
    };
    await loop(claim, 1);
    const claims = await loop(claim, SECONDS);
    const cancelWaits = await changeWhileBusy(api, schedule.scheduleId, claim);

    const line = (name: string, rate: Rate) =>
      console.log(`${name}: ${Math.round(rate.perSecond)}/s, statement p50 ${rate.p50.toFixed(1)} ms, p99 ${rate.p99.toFixed(1)} ms`);
    console.log(`${loaded} older claims in ${DAYS} day partitions, ${CONNECTIONS} connections x ${BATCH}`);
    line('bare INSERT ... unnest', bare);
    line('claims through the gate', claims);
    console.log(`ratio ${(claims.perSecond / bare.perSecond).toFixed(2)}`);
    console.log(
      `a change of the busy schedule: p50 ${percentile(cancelWaits, 0.5).toFixed(1)} ms, most ${Math.max(...cancelWaits).toFixed(1)} ms (${cancelWaits.length} changes)`,
    );
  } finally {
    await Promise.all([admin.close(), sender.close(), api.close()]);
    await test.drop();
  }
}

async function loadOlderClaims(admin: Database, today: number): Promise<number> {
  const perDay = Math.floor(ROWS / (DAYS - 2));
  for (let day = today - DAYS; day < today - 2 && perDay > 0; day++) {
    for (let from = 0; from < perDay; from += 500_000)
      await admin.rows(OLDER, [day, randomUUID(), from, Math.min(from + 500_000, perDay) - 1]);
  }
  await admin.pool.query('VACUUM ANALYZE sender.claim');
  await admin.pool.query('CHECKPOINT');
  return perDay * (DAYS - 2);
}

async function openSchedule(api: Database) {
  const scheduleId = randomUUID();
  const schedule = { scheduleId, numberId: randomUUID(), runId: runId(bucketOf(Date.now()), uuidBytes(scheduleId), 'once') };
  await api.rows(CHANGE_GATE, [
    scheduleId,
    'open',
    1,
    JSON.stringify({
      tenantId: randomUUID(),
      numberId: schedule.numberId,
      mode: 'test',
      channel: 'whatsapp',
      category: 'marketing',
      onUncertain: 'leave',
      retryDelaysMs: [120_000],
      runId: schedule.runId.toString('hex'),
      holdGiveUpMs: 604_800_000,
    }),
  ]);
  return schedule;
}

function items(schedule: { scheduleId: string; numberId: string; runId: Buffer }): DueItem[] {
  const dueAt = Date.now() - 1_000;
  const random = randomBytes(8 * BATCH);
  return Array.from({ length: BATCH }, (_, index) => ({
    occurrenceId: occurrenceId(schedule.runId, random.subarray(index * 8, index * 8 + 8)),
    scheduleId: schedule.scheduleId,
    revision: 1,
    numberId: schedule.numberId,
    dueAt,
    validUntil: null,
    priority: 5,
    position: index,
  }));
}

async function bareInsert(database: Database, batch: DueItem[]): Promise<number> {
  await database.rows(BARE, [
    batch.map((item) => item.occurrenceId),
    batch.map((item) => item.scheduleId),
    batch.map((item) => item.revision),
    batch.map((item) => item.numberId),
    batch.map((item) => item.dueAt),
    batch.map((item) => item.priority),
    batch.map((item) => item.position),
  ]);
  return batch.length;
}

/** Every connection does one batch after the other. */
async function loop(batch: () => Promise<number>, seconds: number): Promise<Rate> {
  const start = performance.now();
  const took: number[] = [];
  let done = 0;
  const connection = async () => {
    while (performance.now() - start < seconds * 1000) {
      const from = performance.now();
      done += await batch();
      took.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  return { perSecond: (done * 1000) / (performance.now() - start), p50: percentile(took, 0.5), p99: percentile(took, 0.99) };
}

/** Pauses and resumes the one schedule that all connections claim for. */
async function changeWhileBusy(api: Database, scheduleId: string, claim: () => Promise<number>): Promise<number[]> {
  const waits: number[] = [];
  let stop = false;
  const claiming = loop(async () => (stop ? 0 : claim()), SECONDS);
  const end = performance.now() + SECONDS * 1000 - 200;
  while (performance.now() < end) {
    for (const action of ['pause', 'resume']) {
      const from = performance.now();
      await api.rows(CHANGE_GATE, [scheduleId, action, 1, '{}']);
      waits.push(performance.now() - from);
    }
    await claim();
  }
  stop = true;
  await claiming;
  return waits;
}

function percentile(values: number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
