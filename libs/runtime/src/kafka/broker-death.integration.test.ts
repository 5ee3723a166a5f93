import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startKafka, type RunningKafka } from '#local-stack/start-kafka';
import { silentLog, type Log } from '../log';
import { waitUntil } from '../wait-until';
import { openAdmin } from './open-admin';
import { openBatchConsumer } from './open-batch-consumer';
import { openHandoverConsumer } from './open-handover-consumer';
import { openProducer } from './open-producer';
import type { InRecord } from './port';

jest.setTimeout(330_000);

const TOPIC = 'executions';
const PARTITIONS = 6;

let kafka: RunningKafka;
const brokers = () => kafka.brokers.split(',');

beforeAll(async () => {
  kafka = await startKafka({ folder: mkdtempSync(join(tmpdir(), 'three-')), brokers: 3, removeOnStop: true });
  const admin = await openAdmin({ brokers: brokers(), clientId: 'death' });
  await admin.ensureTopics([{ name: TOPIC, partitions: PARTITIONS, config: { 'min.insync.replicas': '2' } }]);
  await admin.close();
});

afterAll(async () => {
  await kafka?.stop();
});

/** Keeps warnings for the case that the test fails. */
function tellingLog(lines: string[]): Log {
  const log: Log = {
    ...silentLog,
    warn: (message, fields) => void lines.push(`${message} ${String(fields?.hint ?? fields?.error ?? '')}`),
    with: () => log,
  };
  return log;
}

const numberOf = ({ value }: InRecord) => Number(value.toString());

it('keeps every acknowledged record, in order, through the death of two brokers, one after the other, and both consumers go on by themselves', async () => {
  const said: string[] = [];
  const producer = openProducer({ brokers: brokers(), clientId: 'death', log: tellingLog(said) });
  await producer.connect();
  const fatal: unknown[] = [];
  const handled = Array.from({ length: PARTITIONS }, () => [] as number[]);
  const batches = openBatchConsumer({
    brokers: brokers(),
    clientId: 'death',
    groupId: 'batches',
    onFatal: (error) => fatal.push(error),
  });
  await batches.run([TOPIC], async ({ partition, records }) => void handled[partition]!.push(...records.map(numberOf)));
  const taken = Array.from({ length: PARTITIONS }, () => new Set<number>());
  const handover = openHandoverConsumer({
    brokers: brokers(),
    clientId: 'death',
    groupId: 'handover',
    onFatal: (error) => fatal.push(error),
  });
  await handover.run([TOPIC], {
    onRecords: ({ topic, partition, records }) => {
      for (const record of records) {
        taken[partition]!.add(numberOf(record));
        handover.finished(topic, partition, record.offset);
      }
    },
    onAssigned: () => undefined,
    onRevoked: () => undefined,
  });

  let running = true;
  const acknowledged = Array.from({ length: PARTITIONS }, () => 0);
  const produce = async (partition: number) => {
    while (running) {
      const from = acknowledged[partition]!;
      await producer.send(
        TOPIC,
        partition,
        Array.from({ length: 10 }, (_, at) => ({ key: Buffer.from('k'), value: Buffer.from(String(from + at)) })),
      );
      acknowledged[partition] = from + 10;
      await new Promise(setImmediate);
    }
  };
  const producing = Promise.all(acknowledged.map((_, partition) => produce(partition)));
  for (const id of kafka.ids.slice(0, 2)) {
    const before = [...acknowledged];
    await waitUntil('everything flows', () => acknowledged.every((count, partition) => count > before[partition]! + 50), {
      deadlineMs: 30_000,
    });
    await kafka.kill(id);
    const then = [...acknowledged];
    await waitUntil(
      'everything flows without it',
      () => acknowledged.every((count, partition) => count > then[partition]! + 50),
      { deadlineMs: 90_000 },
    ).catch((error: unknown) => {
      const counts = acknowledged.map((count, partition) => `${count - then[partition]!} in ${partition}`).join(', ');
      throw new Error(`acknowledged since broker ${id} died: ${counts}; the producer said:\n${said.join('\n')}`, {
        cause: error,
      });
    });
    await kafka.restart(id);
  }
  running = false;
  await producing;
  const all = acknowledged.map((count) => Array.from({ length: count }, (_, number) => number));
  await waitUntil(
    'all are handled',
    () => handled.every((numbers, partition) => new Set(numbers).size === acknowledged[partition]),
    { deadlineMs: 45_000 },
  );
  await waitUntil('all are taken', () => taken.every((numbers, partition) => numbers.size === acknowledged[partition]), {
    deadlineMs: 45_000,
  });
  expect(fatal).toEqual([]);
  await batches.stop();
  await handover.stop();
  await producer.close();

  // The log itself, by a reader that was never disturbed.
  const log = Array.from({ length: PARTITIONS }, () => [] as number[]);
  const reader = openBatchConsumer({ brokers: brokers(), clientId: 'death', groupId: 'reader' });
  await reader.run([TOPIC], async ({ partition, records }) => void log[partition]!.push(...records.map(numberOf)));
  await waitUntil('the whole log', () => log.every((numbers, partition) => numbers.at(-1) === acknowledged[partition]! - 1), {
    deadlineMs: 30_000,
  });
  await reader.stop();
  // Only where a producer was given up may the next one have written a batch again.
  const replaced = said.some((line) => line.includes('with a new producer'));
  expect(replaced ? log.map((numbers) => [...new Set(numbers)]) : log).toEqual(all);
});
