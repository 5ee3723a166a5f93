import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { partitionFor } from '#contracts/murmur2';
import { topicName } from '#contracts/topics';
import { startLocalStack } from '#local-stack/start-local-stack';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import type { OutRecord } from '#runtime/kafka/port';
import { waitUntil } from '#runtime/wait-until';
import { Stage, type Campaign, type Number as SendingNumber } from '../services/scheduler/test-support/stage';

/**
 * Two figures of a single scheduler process, senders stopped:
 * - 100,000 messages due at one instant, 200 numbers with a credit of 500 each: when the first and the last are in Kafka, read back by
 *   a consumer on the same machine; beside a bare loop of the same producer with records of the same size;
 * - schedules of one recipient at a steady rate: from the due instant to the consumer.
 * node dist/bench/release.js [--iterations 3] [--seconds 20] [--rate 200] [--numbers 200] [--recipients 500]
 */
const option = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const ITERATIONS = option('iterations', 3);
const SECONDS = option('seconds', 20);
const RATE = option('rate', 200);
const NUMBERS = option('numbers', 200);
const RECIPIENTS = option('recipients', 500);

interface Arrival {
  scheduleId: string;
  dueAt: number;
  /** When the consumer had it. */
  at: number;
  /** When the producer made the batch. */
  sentAt: number;
}

class Arrivals {
  readonly all: Arrival[] = [];

  constructor(private readonly stage: Stage) {}

  async start(): Promise<void> {
    const { codec, prefix } = this.stage;
    const consumer = openBatchConsumer({
      brokers: process.env.KAFKA_BROKERS!.split(','),
      clientId: 'release-bench',
      groupId: `${prefix}bench`,
      mostRecords: 5_000,
    });
    await consumer.run([topicName(prefix, 'executions')], async ({ records }) => {
      const at = Date.now();
      for (const { value, timestampMs } of records) {
        const { name, event } = codec.decode(value);
        if (name === 'ExecutionDue')
          this.all.push({ scheduleId: event.scheduleId.toString('hex'), dueAt: event.dueAt, at, sentAt: timestampMs });
      }
    });
    this.stage.stops.push(() => consumer.stop());
  }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-bench-'));
  const stack = await startLocalStack({ folder, removeOnStop: true, progress: (line) => process.stderr.write(`${line}\n`) });
  Object.assign(process.env, stack.env);
  const stage = await Stage.open();
  let scheduler: ChildProcess | undefined;
  try {
    const arrivals = new Arrivals(stage);
    await arrivals.start();
    scheduler = await startScheduler(stage);
    for (let iteration = 1; iteration <= ITERATIONS; iteration++) {
      const burst = await releaseBurst(stage, arrivals);
      const bareMs = await bareProducer(stage, NUMBERS * RECIPIENTS);
      const ratio = (bareMs / (burst.lastMs - burst.firstMs)).toFixed(2);
      console.log(
        `burst ${iteration}: ${NUMBERS * RECIPIENTS} due at once on ${NUMBERS} numbers: first ${burst.firstMs} ms, last ${burst.lastMs} ms ` +
          `(produced ${burst.firstSentMs} to ${burst.lastSentMs} ms); bare producer ${Math.round(bareMs)} ms, ratio ${ratio}`,
      );
    }
    if (SECONDS > 0) console.log(await steadyRate(stage, arrivals));
  } finally {
    if (scheduler) await stopped(scheduler);
    await stage.close();
    await stack.stop();
  }
}

async function startScheduler(stage: Stage): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    ['-r', join(__dirname, '../libs/runtime/src/telemetry.js'), join(__dirname, '../services/scheduler/src/main.js')],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        DATABASE_URL: stage.test.urlFor('punctual_scheduler'),
        TOPIC_PREFIX: stage.prefix,
        PORT: '18082',
        LOG_LEVEL: 'warn',
      },
    },
  );
  await waitUntil(
    'the scheduler to be ready',
    async () => (await fetch('http://127.0.0.1:18082/health/ready').catch(() => undefined))?.ok,
    {
      deadlineMs: 60_000,
      everyMs: 100,
    },
  );
  return child;
}

async function stopped(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

async function request(stage: Stage, campaigns: Campaign[]): Promise<void> {
  const topic = topicName(stage.prefix, 'schedules');
  const byPartition = new Map<number, OutRecord[]>();
  for (const { event } of campaigns) {
    const partition = partitionFor(event.scheduleId, 6);
    const record = { key: Buffer.from(event.scheduleId), value: stage.codec.encode('ScheduleRequested', event) };
    byPartition.set(partition, [...(byPartition.get(partition) ?? []), record]);
  }
  await Promise.all([...byPartition].map(([partition, records]) => stage.producer.send(topic, partition, records)));
  await waitUntil('all to be planned', async () => {
    const ids = campaigns.map(({ runId }) => runId);
    const { rows } = await stage.sql.query<{ count: number }>('SELECT count(*)::int FROM scheduler.run WHERE run_id = ANY ($1)', [
      ids,
    ]);
    return rows[0]!.count === campaigns.length;
  });
}

async function releaseBurst(stage: Stage, arrivals: Arrivals) {
  const numbers = Array.from({ length: NUMBERS }, () => stage.number());
  const dueAt = Date.now() + 12_000;
  const campaigns = await stage.campaigns(numbers.map((number) => ({ number, recipients: RECIPIENTS, dueAt })));
  await request(stage, campaigns);
  if (Date.now() > dueAt - 500) throw new Error('planning took too long for this machine: nothing would be measured');
  const ids = new Set(campaigns.map(({ scheduleId }) => scheduleId.toString('hex')));
  const seen = arrivals.all.length;
  // Senders report their credit again before it grows old.
  const mine = await waitUntil(
    'everybody to arrive',
    async () => {
      await stage.reportCredit(numbers, RECIPIENTS);
      const arrived = arrivals.all.slice(seen).filter(({ scheduleId }) => ids.has(scheduleId));
      return arrived.length >= NUMBERS * RECIPIENTS ? arrived : undefined;
    },
    { deadlineMs: 60_000, everyMs: 500 },
  );
  const times = (of: 'at' | 'sentAt') => mine.map((arrival) => arrival[of] - dueAt);
  const least = (values: number[]) => values.reduce((a, b) => Math.min(a, b));
  const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b));
  if (least(times('at')) < 0) throw new Error('a message was released before it was due');
  return {
    firstMs: least(times('at')),
    lastMs: most(times('at')),
    firstSentMs: least(times('sentAt')),
    lastSentMs: most(times('sentAt')),
  };
}

/** The same client, partitions and sizes, with nothing before it and nothing behind it. */
async function bareProducer(stage: Stage, count: number): Promise<number> {
  const topic = topicName(stage.prefix, 'webhooks');
  const begun = performance.now();
  const sends: Array<Promise<void>> = [];
  for (let sent = 0; sent < count; sent += 2_000) {
    const records: OutRecord[][] = Array.from({ length: 6 }, () => []);
    for (let index = 0; index < 2_000; index++) records[index % 6]!.push({ key: randomBytes(20), value: randomBytes(105) });
    const round = records.map((part, partition) => stage.producer.send(topic, partition, part));
    sends.push(...round);
    if (sends.length > 12) await sends[sends.length - 12];
  }
  await Promise.all(sends);
  return performance.now() - begun;
}

async function steadyRate(stage: Stage, arrivals: Arrivals): Promise<string> {
  const numbers: SendingNumber[] = Array.from({ length: 8 }, () => stage.number());
  const count = SECONDS * RATE;
  // Creating one takes two statements here; the first is due when the last is planned.
  const dueFrom = Date.now() + 10_000 + count * 6;
  const campaigns = await stage.campaigns(
    Array.from({ length: count }, (_, index) => ({
      number: numbers[index % numbers.length]!,
      dueAt: dueFrom + Math.round((index * 1_000) / RATE),
    })),
  );
  await request(stage, campaigns);
  const ids = new Set(campaigns.map(({ scheduleId }) => scheduleId.toString('hex')));
  const seen = arrivals.all.length;
  const mine = await waitUntil(
    'everybody to arrive',
    async () => {
      await stage.reportCredit(numbers, 500);
      const arrived = arrivals.all.slice(seen).filter(({ scheduleId }) => ids.has(scheduleId));
      return arrived.length >= count ? arrived : undefined;
    },
    { deadlineMs: 120_000 + SECONDS * 1_000, everyMs: 1_000 },
  );
  const lags = mine.map(({ at, dueAt }) => at - dueAt).sort((a, b) => a - b);
  const percentile = (share: number) => lags[Math.min(lags.length - 1, Math.floor(lags.length * share))];
  const early = lags.filter((lag) => lag < 0).length;
  return (
    `steady ${RATE}/s, ${count} schedules of one recipient on ${numbers.length} numbers: due to consumer p50 ${percentile(0.5)} ms, ` +
    `p90 ${percentile(0.9)} ms, p99 ${percentile(0.99)} ms, max ${lags.at(-1)} ms, early ${early}`
  );
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
