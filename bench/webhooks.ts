import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import { waitUntil } from '#runtime/wait-until';
import {
  APP_SECRET,
  CREDENTIALS_KEY,
  plans,
  signature,
  Stage,
  TOKEN_KEY,
  tells,
  tokenOf,
  webhookBody,
} from '../services/receipts/test-support/stage';
import { createTopics, serverAddress, uniquePrefix } from '../test-support/isolation';

/**
 * Webhooks acknowledged by a receipts process of its own, statuses by POSTs of 1 and of 100: at a fixed rate (latency of the
 * acknowledgement, counted from when the POST was due), and as fast as 32 connections go, beside a bare HTTP server that reads
 * the body and answers. A status counts as acknowledged when Kafka has the body.
 * KAFKA_BROKERS, DATABASE_URL, WEBHOOK_BENCH_RATE (statuses a second), WEBHOOK_BENCH_SECONDS.
 */
const RATE = Number(process.env.WEBHOOK_BENCH_RATE ?? 3_000);
const SECONDS = Number(process.env.WEBHOOK_BENCH_SECONDS ?? 10);
const CONNECTIONS = 32;
const BURST = 3_000;

interface Post {
  body: Buffer;
  headers: Record<string, string>;
}

async function main(): Promise<void> {
  const stage = await Stage.open();
  const prefix = uniquePrefix();
  const topics = await createTopics(prefix);
  const children: ChildProcess[] = [];
  try {
    const number = await stage.number();
    const count = RATE * SECONDS;
    const run = await stage.campaign(count);
    await submitAll(stage, run, count);
    await stage.sql.query('DELETE FROM receipts.outbox');
    const at = Math.floor(run.dueAt / 1000) + 1;
    const posts = (size: number, status: string): Post[] =>
      Array.from({ length: Math.ceil(count / size) }, (_, place) => {
        const body = webhookBody(
          Array.from({ length: Math.min(size, count - place * size) }, (_, index) => {
            const position = place * size + index;
            return {
              wamid: `wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QTFGMDlDMjdE${position}==`,
              token: tokenOf(run, position),
              status,
              at,
            };
          }),
        );
        return { body, headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature(body, APP_SECRET) } };
      });

    const receipts = startReceipts(stage, prefix);
    children.push(receipts.child);
    const origin = await receipts.origin;
    const path = `/webhooks/whatsapp/${number.endpointId}`;
    const bare = spawn(process.execPath, [join(__dirname, 'bare-http-server.js')], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(bare);
    const bareOrigin = `http://127.0.0.1:${await firstLine(bare)}`;

    await burst(origin, path, posts(1, 'sent').slice(0, 500));
    for (const [size, status] of [
      [1, 'sent'],
      [100, 'delivered'],
    ] as const) {
      const list = posts(size, status);
      const cpu = cpuMs(receipts.child.pid!);
      const paced = await atRate(origin, path, list, RATE / size);
      console.log(
        `POSTs of ${size}: ${Math.round(paced.perSecond * size)} statuses/s acknowledged at ${RATE}/s, p50 ${ms(paced.latencies, 0.5)}, p99 ${ms(paced.latencies, 0.99)}, most ${ms(paced.latencies, 1)}`,
      );
      const caughtUp = await projected(stage, run.runId, status, count);
      const each = ((cpuMs(receipts.child.pid!) - cpu) * 1000) / count;
      console.log(
        `  all ${count} in the read model ${caughtUp} ms after the last acknowledgement; CPU of the process ${each.toFixed(0)} us a status, relay included`,
      );
      const some = list.slice(0, Math.min(list.length, Math.ceil((BURST * 3) / Math.sqrt(size))));
      const cpuBefore = [cpuMs(receipts.child.pid!), cpuMs(bare.pid!)] as const;
      const ours = await burst(origin, path, some);
      const least = await burst(bareOrigin, path, some);
      const cpuOf = (pid: number, before: number) => `${(((cpuMs(pid) - before) * 1000) / some.length).toFixed(0)} us`;
      console.log(
        `  as fast as ${CONNECTIONS} connections go: ${Math.round(ours)} POSTs/s (${Math.round(ours * size)} statuses/s), bare HTTP server ${Math.round(least)} POSTs/s, ratio ${(ours / least).toFixed(2)}; CPU a POST ${cpuOf(receipts.child.pid!, cpuBefore[0])} and ${cpuOf(bare.pid!, cpuBefore[1])}`,
      );
    }
  } finally {
    for (const child of children) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await topics.drop();
    await stage.close();
  }
}

async function submitAll(stage: Stage, run: Awaited<ReturnType<Stage['campaign']>>, count: number): Promise<void> {
  const projection = stage.projection();
  await projection.project([stage.batch('runs', 0, [plans.planned(run)])]);
  for (let from = 0; from < count; from += 1_000) {
    const size = Math.min(1_000, count - from);
    await projection.project([
      stage.batch(
        'none',
        0,
        Array.from({ length: size }, (_, index) => tells.submitted(run, from + index)),
      ),
    ]);
  }
  await stage.sql.query('VACUUM ANALYZE receipts.message');
}

function startReceipts(stage: Stage, prefix: string): { child: ChildProcess; origin: Promise<string> } {
  const child = spawn(process.execPath, [join(__dirname, '../services/receipts/src/main.js')], {
    env: {
      PATH: process.env.PATH,
      KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
      DATABASE_URL: stage.test.urlFor('punctual_receipts'),
      TOPIC_PREFIX: prefix,
      PORT: '0',
      TOKEN_KEY: TOKEN_KEY.toString('base64'),
      CREDENTIALS_KEY: CREDENTIALS_KEY.toString('base64'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const origin = new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`receipts ended with ${code}`)));
    let address = '';
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const entry = JSON.parse(line) as { message: string; address?: string; level: string };
      if (entry.level === 'error' || entry.level === 'warn') process.stderr.write(`${line}\n`);
      if (entry.message === 'listening') address = entry.address!;
      if (entry.message === 'ready') resolve(address);
    });
  });
  return { child, origin };
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
  return line;
}

/** Every POST at its own instant, whatever became of the ones before: a slow answer delays nobody else's clock. */
async function atRate(
  origin: string,
  path: string,
  posts: Post[],
  perSecond: number,
): Promise<{ perSecond: number; latencies: number[] }> {
  const pool = new Pool(origin, { connections: 256, pipelining: 1 });
  const latencies: number[] = [];
  const open = new Set<Promise<void>>();
  const started = performance.now();
  for (let next = 0; next < posts.length;) {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond);
    for (; next <= due && next < posts.length; next++) {
      const dueAt = started + (next / perSecond) * 1000;
      const work: Promise<void> = post(pool, path, posts[next]!).then(() => {
        latencies.push(performance.now() - dueAt);
        open.delete(work);
      });
      open.add(work);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(open);
  const perSecondReached = (posts.length / (performance.now() - started)) * 1000;
  await pool.close();
  return { perSecond: perSecondReached, latencies: latencies.sort((a, b) => a - b) };
}

async function burst(origin: string, path: string, posts: Post[]): Promise<number> {
  const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (next < posts.length) await post(pool, path, posts[next++]!);
    }),
  );
  const perSecond = (posts.length / (performance.now() - started)) * 1000;
  await pool.close();
  return perSecond;
}

async function post(pool: Pool, path: string, { body, headers }: Post): Promise<void> {
  const { statusCode, body: answer } = await pool.request({ method: 'POST', path, body, headers });
  await answer.dump();
  if (statusCode !== 200) throw new Error(`a webhook was answered with ${statusCode}`);
}

async function projected(stage: Stage, runId: Buffer, status: string, count: number): Promise<number> {
  const started = performance.now();
  await waitUntil(
    `${count} messages to be ${status}`,
    async () => {
      const { rows } = await stage.sql.query<{ count: number }>(
        'SELECT count FROM receipts.run_count WHERE run_id = $1 AND status = $2',
        [runId, status],
      );
      return rows[0]?.count === count;
    },
    { deadlineMs: 120_000, everyMs: 50 },
  );
  return Math.round(performance.now() - started);
}

function ms(sorted: number[], share: number): string {
  return `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1)} ms`;
}

function cpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return NaN;
  }
}

void main();
