import { randomBytes, randomUUID } from 'node:crypto';
import { bucketOf, occurrenceId, runId, uuidBytes } from '#contracts/ids';
import type { Database } from '#runtime/postgres/database';
import { openDatabase } from '#runtime/postgres/open-database';
import { statement } from '#runtime/postgres/sql-file';
import { PostgresGate } from '../services/sender/src/postgres/gate';
import type { DueItem } from '../services/sender/src/postgres/gate-port';
import { createTestDatabase, type TestDatabase } from '../test-support/isolation';
import { percentile } from './support/percentile';
import { printTable } from './support/print-table';
import { ownCpuSeconds, usageOf } from './support/process-usage';
import { withServers } from './support/with-servers';

/**
 * Claims a second through the gate with older claims present, beside a bare `INSERT ... unnest` of the same ids with the same driver
 * and as many connections; how long a change of the schedule waits while its gate is busiest; and the results of those claims.
 * GATE_BENCH_ROWS (older claims), GATE_BENCH_SECONDS, GATE_BENCH_CONNECTIONS, GATE_BENCH_BATCH.
 */
interface Size {
  rows: number;
  seconds: number;
  connections: number;
  batch: number;
}

const DAYS = 30;
const OPTIONS = { instance: 'bench', deadlineMs: 600_000 };
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
  `INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, deadline, called_at,
     state, provider_message_id)
   SELECT substring(int8send($1::bigint) FROM 5 FOR 4) || substring(sha256(int8send(i / 10000)) FROM 1 FOR 8)
       || substring(sha256(int8send(i)) FROM 1 FOR 8),
     $2, $2, 1, i, 5, 1, now(), now(), now(), 'accepted', 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QjhDRjQyRjlDMDQ4RkRBNQA='
   FROM generate_series($3::bigint, $4::bigint) AS i`,
);

interface Measured {
  perSecond: number;
  took: number[];
  nodeMicros: number;
  postgresMicros: number;
}

export async function run({ smoke }: { smoke: boolean }): Promise<void> {
  const setting = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise);
  const size: Size = {
    rows: setting('GATE_BENCH_ROWS', smoke ? 20_000 : 10_000_000),
    seconds: setting('GATE_BENCH_SECONDS', smoke ? 0.5 : 5),
    connections: setting('GATE_BENCH_CONNECTIONS', 4),
    batch: setting('GATE_BENCH_BATCH', 200),
  };
  await withServers(async () => {
    const test = await createTestDatabase();
    const open = (url: string, max: number) => openDatabase({ url, name: 'bench', max, statementTimeoutMs: 600_000 });
    const [admin, sender, api] = await Promise.all([
      open(test.adminUrl, 2),
      open(test.urlFor('punctual_sender'), size.connections),
      open(test.urlFor('punctual_api'), 2),
    ]);
    try {
      await measureAll(size, admin, sender, api);
    } finally {
      await Promise.all([admin.close(), sender.close(), api.close()]);
      await (test as TestDatabase).drop();
    }
  });
}

async function measureAll(size: Size, admin: Database, sender: Database, api: Database): Promise<void> {
  const loaded = await loadOlderClaims(size.rows, admin);
  await admin.pool.query(
    `CREATE TABLE public.bare (occurrence_id bytea PRIMARY KEY, schedule_id uuid, revision int, number_id uuid, due_at float8,
       priority smallint, position int, at timestamptz, state text)`,
  );
  await admin.pool.query('GRANT ALL ON public.bare TO punctual_sender');
  const schedule = await openSchedule(api);
  const gate = new PostgresGate(sender);
  const claimed: DueItem[][] = [];
  const claim = async () => {
    const batch = items(schedule, size.batch);
    const verdicts = await gate.decide(batch, OPTIONS);
    claimed.push(batch);
    return verdicts.filter((verdict) => verdict.kind === 'claimed').length;
  };
  const record = async () => {
    const batch = claimed.pop() ?? [];
    const endedAt = Date.now();
    await gate.recordResults(
      batch.map(({ occurrenceId }) => ({
        occurrenceId,
        attempt: 1,
        outcome: 'accepted',
        calledAt: endedAt - 20,
        endedAt,
        providerMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QjhDRjQyRjlDMDQ4RkRBNQA=',
        providerStatus: 'accepted',
        waits: [{ reason: 'pace', ms: 12 }],
      })),
      { evidenceWindowMs: 900_000, resendAfterMs: 60_000 },
    );
    return batch.length;
  };
  const measure = (batch: () => Promise<number>) => loop(size, admin, batch);
  const bareInsert = async () => {
    const batch = items(schedule, size.batch);
    await sender.rows(BARE, [
      batch.map((item) => item.occurrenceId),
      batch.map((item) => item.scheduleId),
      batch.map((item) => item.revision),
      batch.map((item) => item.numberId),
      batch.map((item) => item.dueAt),
      batch.map((item) => item.priority),
      batch.map((item) => item.position),
    ]);
    return batch.length;
  };

  await loop({ ...size, seconds: 0.5 }, admin, bareInsert);
  await loop({ ...size, seconds: 0.5 }, admin, claim);
  const bare = await measure(bareInsert);
  const claims = await measure(claim);
  const again = await measure(async () => {
    const batch = claimed[Math.floor(Math.random() * claimed.length)]!;
    await gate.decide(batch, OPTIONS);
    return batch.length;
  });
  const recorded = await measure(record);
  const waits = await changeWhileBusy(size, admin, api, schedule.scheduleId, claim);

  const row = (name: string, { perSecond, took, nodeMicros, postgresMicros }: Measured) => [
    name,
    perSecond,
    perSecond / bare.perSecond,
    percentile(took, 0.5),
    percentile(took, 0.99),
    postgresMicros,
    nodeMicros,
  ];
  printTable(
    `Gate: ${size.connections} connections x ${size.batch}, ${loaded.toLocaleString('en-US')} older claims of ${DAYS} days`,
    ['', 'per second', 'ratio', 'p50 ms', 'p99 ms', 'PostgreSQL µs each', 'Node µs each'],
    [
      row('bare INSERT ... unnest', bare),
      row('claims through the gate', claims),
      row('duplicates', again),
      row('results, accepted', recorded),
    ],
  );
  process.stdout.write(
    `A change of the schedule that all of them claim for waits ${percentile(waits, 0.5).toFixed(1)} ms (p50), ` +
      `${Math.max(...waits).toFixed(1)} ms at most, in ${waits.length} changes.\n`,
  );
}

async function loadOlderClaims(rows: number, admin: Database): Promise<number> {
  const today = bucketOf(Date.now());
  for (let week = Math.floor((today - DAYS) / 7); week <= Math.floor((today - 2) / 7); week++) {
    for (const table of ['claim', 'attempt_begun', 'attempt_outcome', 'evidence'])
      await admin.rows(statement('partition', 'SELECT sender.ensure_week_partition($1, $2, $3)'), [table, week, '']);
  }
  const perDay = Math.floor(rows / DAYS);
  for (let day = today - DAYS; day < today; day++) {
    for (let from = 0; from < perDay; from += 100_000)
      await admin.rows(OLDER, [day, randomUUID(), day * perDay + from, day * perDay + Math.min(from + 100_000, perDay) - 1]);
  }
  // Statistics that are older than the rows would plan for a table that is not there.
  await admin.pool.query('VACUUM ANALYZE sender.claim');
  await admin.pool.query('CHECKPOINT');
  return perDay * DAYS;
}

async function openSchedule(api: Database) {
  const scheduleId = randomUUID();
  const schedule = { scheduleId, numberId: randomUUID(), runId: runId(bucketOf(Date.now()), uuidBytes(scheduleId), 'once') };
  const details = {
    tenantId: randomUUID(),
    numberId: schedule.numberId,
    mode: 'test',
    channel: 'whatsapp',
    category: 'marketing',
    onUncertain: 'leave',
    retryDelaysMs: [120_000],
    runId: schedule.runId.toString('hex'),
    holdGiveUpMs: 604_800_000,
  };
  await api.rows(CHANGE_GATE, [scheduleId, 'open', 1, JSON.stringify(details)]);
  return schedule;
}

function items(schedule: { scheduleId: string; numberId: string; runId: Buffer }, count: number): DueItem[] {
  const dueAt = Date.now() - 1_000;
  const random = randomBytes(8 * count);
  return Array.from({ length: count }, (_, index) => ({
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

/** Every connection does one batch after the other. */
async function loop(size: Size, admin: Database, batch: () => Promise<number>): Promise<Measured> {
  const postgresBefore = await postgresCpuSeconds(admin);
  const nodeBefore = ownCpuSeconds();
  const start = performance.now();
  const took: number[] = [];
  let done = 0;
  const connection = async () => {
    while (performance.now() - start < size.seconds * 1000) {
      const from = performance.now();
      const count = await batch();
      if (count === 0) return;
      done += count;
      took.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: size.connections }, connection));
  const perSecond = (done * 1000) / (performance.now() - start);
  const each = (seconds: number) => (seconds * 1e6) / done;
  return {
    perSecond,
    took,
    nodeMicros: each(ownCpuSeconds() - nodeBefore),
    postgresMicros: each((await postgresCpuSeconds(admin)) - postgresBefore),
  };
}

const BACKENDS = statement(
  'backends',
  `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND usename = 'punctual_sender'`,
);
async function postgresCpuSeconds(admin: Database): Promise<number> {
  const backends = await admin.rows<{ pid: number }>(BACKENDS);
  return backends.reduce((sum, { pid }) => sum + (usageOf(pid)?.cpuSeconds ?? 0), 0);
}

/** Pauses and resumes the one schedule that all connections claim for; a paused moment costs them nothing but the answer. */
async function changeWhileBusy(
  size: Size,
  admin: Database,
  api: Database,
  scheduleId: string,
  claim: () => Promise<number>,
): Promise<number[]> {
  const waits: number[] = [];
  let over = false;
  const claiming = loop(size, admin, async () => (over ? 0 : Math.max(1, await claim()))).finally(() => (over = true));
  while (!over) {
    // As often as changes of a whole installation come, not so often that nothing is claimed between them.
    for (const action of ['pause', 'resume']) {
      const from = performance.now();
      await api.rows(CHANGE_GATE, [scheduleId, action, 1, '{}']);
      waits.push(performance.now() - from);
    }
    for (let batches = 0; batches < 10 && !over; batches++) await claim();
  }
  await claiming;
  return waits;
}
