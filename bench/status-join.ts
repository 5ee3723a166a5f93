import { readFileSync } from 'node:fs';
import { statement } from '#runtime/postgres/sql-file';
import { plans, Stage, tells, tokenOf, webhook } from '../services/receipts/test-support/stage';

/**
 * Messages a second through the status join, each submitted, sent and delivered in batches of their own, with the CPU that one
 * message costs in Node and in PostgreSQL; beside a bare upsert of as many rows with the same driver.
 * DATABASE_URL, JOIN_BENCH_MESSAGES, JOIN_BENCH_BATCH.
 */
const MESSAGES = Number(process.env.JOIN_BENCH_MESSAGES ?? 30_000);
const BATCH = Number(process.env.JOIN_BENCH_BATCH ?? 1_000);
const DUE = Date.now() - 60_000;

const BARE = statement(
  'bare-upsert',
  `INSERT INTO public.bare AS b (id, status, facts, at)
   SELECT u.id, $2::text, u.facts::jsonb, now() FROM ROWS FROM (unnest($1::bytea[]), string_to_table($3::text, E'\\n')) AS u (id, facts)
   ORDER BY u.id ON CONFLICT (id) DO UPDATE SET status = excluded.status, facts = excluded.facts, at = excluded.at`,
);

async function main(): Promise<void> {
  const stage = await Stage.open();
  try {
    const projection = stage.projection();
    const run = await stage.campaign(MESSAGES, { dueAt: DUE });
    await projection.project([stage.batch('runs', 0, [plans.planned(run)])]);
    const at = Math.floor(DUE / 1000);
    const wamid = (position: number) => `wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QTFGMDlDMjdE${String(position).padStart(8, '0')}AA==`;
    const kinds: Array<[string, (position: number) => Parameters<Stage['batch']>[2][number]]> = [
      ['submitted', (position) => tells.submitted(run, position, { wamid: wamid(position) })],
      ['sent', (position) => webhook([{ wamid: wamid(position), token: tokenOf(run, position), status: 'sent', at: at + 1 }])],
      [
        'delivered',
        (position) => webhook([{ wamid: wamid(position), token: tokenOf(run, position), status: 'delivered', at: at + 2 }]),
      ],
    ];
    await stage.sql.query(
      'CREATE TABLE public.bare (id bytea PRIMARY KEY, status text, facts jsonb, at timestamptz) WITH (fillfactor = 70)',
    );
    await stage.sql.query('GRANT ALL ON public.bare TO punctual_receipts');

    let total = 0;
    for (const [name, tell] of kinds) {
      const cost: Cost = { wallMs: 0, nodeMs: 0, postgresMs: 0 };
      const backend = await postgresMs(stage);
      for (let from = 0; from < MESSAGES; from += BATCH) {
        const size = Math.min(BATCH, MESSAGES - from);
        const batch = stage.batch(
          name === 'submitted' ? 'deliveries' : 'webhooks',
          0,
          Array.from({ length: size }, (_, index) => tell(from + index)),
        );
        await measured(cost, () => projection.project([batch]));
      }
      cost.postgresMs = (await postgresMs(stage)) - backend;
      total += cost.wallMs;
      report(name, cost);
      await stage.sql.query('DELETE FROM receipts.outbox');
    }
    const ids = Array.from({ length: MESSAGES }, (_, position) => run.occurrence(position));
    const facts = JSON.stringify({
      own: { kind: 'submitted', step: 2, at: DUE, position: 1, revision: 1, dueAt: DUE, attempt: 1 },
      sentAt: DUE,
    });
    let bare = 0;
    for (const [name] of kinds) {
      const cost: Cost = { wallMs: 0, nodeMs: 0, postgresMs: 0 };
      const backend = await postgresMs(stage);
      await measured(cost, async () => {
        for (let from = 0; from < MESSAGES; from += BATCH) {
          const part = ids.slice(from, from + BATCH);
          await stage.database.rows(BARE, [part, name, part.map(() => facts).join('\n')]);
        }
      });
      cost.postgresMs = (await postgresMs(stage)) - backend;
      bare += cost.wallMs;
      report(`bare upsert ${name}`, cost);
    }
    console.log(
      `${Math.round((MESSAGES / total) * 1000)} messages/s, each submitted, sent and delivered; ratio to bare upserts ${(bare / total).toFixed(2)}`,
    );
    const { rows } = await stage.sql.query<{ hot: string }>(
      `SELECT round(100.0 * n_tup_hot_upd / nullif(n_tup_upd, 0), 1) AS hot FROM pg_stat_user_tables WHERE relid = 'receipts.message'::regclass`,
    );
    console.log(
      `updates of message rows that stayed in their page: ${rows[0]?.hot ?? 'unknown'} %; counts ${JSON.stringify(await stage.counts(run))}`,
    );
  } finally {
    await stage.close();
  }
}

interface Cost {
  wallMs: number;
  nodeMs: number;
  postgresMs: number;
}

/** The making of the batches is no part of it. */
async function measured(cost: Cost, work: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  await work();
  cost.wallMs += performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  cost.nodeMs += (user + system) / 1000;
}

/** CPU of the backends that work for this database, where their processes can be seen. */
async function postgresMs(stage: Stage): Promise<number> {
  const { rows } = await stage.sql.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND usename = 'punctual_receipts'`,
  );
  return rows.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
}

function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

function report(name: string, { wallMs, nodeMs, postgresMs }: Cost): void {
  const each = (ms: number) => `${((ms * 1000) / MESSAGES).toFixed(0)} us`;
  console.log(
    `${name}: ${Math.round((MESSAGES / wallMs) * 1000)}/s, CPU a message: Node ${each(nodeMs)}, PostgreSQL ${each(postgresMs)}`,
  );
}

void main();
