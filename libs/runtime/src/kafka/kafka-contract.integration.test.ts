import { randomBytes } from 'node:crypto';
import { createServer, connect as connectSocket, type Server } from 'node:net';
import { serverAddress, uniquePrefix } from '../../../../test-support/isolation';
import { PunctualError } from '../errors';
import { waitUntil } from '../wait-until';
import { openAdmin } from './open-admin';
import { openBatchConsumer, type BatchConsumerOptions } from './open-batch-consumer';
import { openHandoverConsumer, type HandoverConsumerOptions } from './open-handover-consumer';
import { openProducer } from './open-producer';
import type { BatchProducer, InRecord, KafkaAdmin, OutRecord } from './port';

jest.setTimeout(60_000);

const PARTITIONS = 4;
const brokers = () => serverAddress('KAFKA_BROKERS').split(',');
const prefix = uniquePrefix();
const stops: (() => Promise<void>)[] = [];
let admin: KafkaAdmin;
let producer: BatchProducer;
let made = 0;

beforeAll(async () => {
  admin = await openAdmin({ brokers: brokers(), clientId: 'contract-admin' });
  producer = openProducer({ brokers: brokers(), clientId: 'contract-producer' });
  await producer.connect();
});

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

afterAll(async () => {
  await producer.close();
  await admin.close();
});

async function newTopic(partitions = PARTITIONS): Promise<string> {
  const name = `${prefix}topic-${++made}`;
  await admin.ensureTopics([
    { name, partitions, config: {} },
    { name: `${name}.dead`, partitions: 1, config: {} },
  ]);
  return name;
}

function records(from: number, to: number): OutRecord[] {
  return Array.from({ length: to - from }, (_, at) => ({
    key: Buffer.from(`k${from + at}`),
    value: Buffer.from(String(from + at)),
  }));
}

const numberOf = ({ value }: InRecord) => Number(value.toString());

function batchConsumer(options: Partial<BatchConsumerOptions> = {}) {
  const consumer = openBatchConsumer({ brokers: brokers(), clientId: 'contract', groupId: `${prefix}g${++made}`, ...options });
  stops.push(() => consumer.stop());
  return consumer;
}

function handoverConsumer(options: Partial<HandoverConsumerOptions> = {}) {
  const consumer = openHandoverConsumer({
    brokers: brokers(),
    clientId: 'contract',
    groupId: `${prefix}g${++made}`,
    commitEveryMs: 50,
    ...options,
  });
  stops.push(() => consumer.stop());
  return consumer;
}

describe('producer and batch consumer', () => {
  it('bring every record to its partition, in order, with key, value, headers and the time of sending', async () => {
    const topic = await newTopic();
    const seen = new Map<number, number[]>();
    let first: InRecord | undefined;
    const before = Date.now();
    await producer.send(topic, 0, [{ key: Buffer.from('k'), value: Buffer.from('-1'), headers: { traceparent: 'here' } }]);
    await Promise.all(Array.from({ length: 1_200 }, (_, n) => producer.send(topic, n % PARTITIONS, records(n, n + 1))));
    await batchConsumer().run([topic], async (batch) => {
      if (batch.partition === 0) first ??= batch.records[0];
      seen.set(batch.partition, [...(seen.get(batch.partition) ?? []), ...batch.records.map(numberOf)]);
    });
    await waitUntil('all records', () => [...seen.values()].flat().length === 1_201);
    for (const [partition, numbers] of seen) {
      const expected = Array.from({ length: 300 }, (_, n) => n * PARTITIONS + partition);
      expect(numbers).toEqual(partition === 0 ? [-1, ...expected] : expected);
    }
    expect(first).toMatchObject({ offset: 0n, headers: { traceparent: 'here' } });
    expect(first!.key!.toString()).toBe('k');
    expect(first!.timestampMs).toBeGreaterThanOrEqual(before - 5);
    expect(first!.timestampMs).toBeLessThanOrEqual(Date.now() + 5);
  });

  it('sends calls that are larger than a request, whole', async () => {
    const topic = await newTopic(1);
    const large = Array.from({ length: 40 }, () => ({ key: Buffer.alloc(0), value: randomBytes(100_000) }));
    await producer.send(topic, 0, large);
    const seen: Buffer[] = [];
    await batchConsumer().run([topic], async (batch) => void seen.push(...batch.records.map(({ value }) => value)));
    await waitUntil('all large records', () => seen.length === large.length);
    expect(seen.every((value, at) => value.equals(large[at]!.value))).toBe(true);
  });

  it('goes on after a restart where the last finished batch ended', async () => {
    const topic = await newTopic(1);
    const groupId = `${prefix}restart`;
    await producer.send(topic, 0, records(0, 100));
    const first: number[] = [];
    const one = batchConsumer({ groupId });
    await one.run([topic], async (batch) => void first.push(...batch.records.map(numberOf)));
    await waitUntil('the first hundred', () => first.length === 100);
    await one.stop();
    await producer.send(topic, 0, records(100, 150));
    const second: number[] = [];
    await batchConsumer({ groupId }).run([topic], async (batch) => void second.push(...batch.records.map(numberOf)));
    await waitUntil('the next fifty', () => second.length >= 50);
    expect(second).toEqual(Array.from({ length: 50 }, (_, at) => 100 + at));
  });

  it('parks the one record that can not be handled, with its reason, and handles all others', async () => {
    const topic = await newTopic(1);
    await producer.send(topic, 0, records(0, 64));
    const good = new Set<number>();
    await batchConsumer().run([topic], async (batch) => {
      for (const record of batch.records) {
        if (numberOf(record) === 37) throw new PunctualError('body_unreadable', 'no such version, called +4915112345678');
        good.add(numberOf(record));
      }
    });
    await waitUntil('all but one', () => good.size === 63);
    const dead: InRecord[] = [];
    await batchConsumer().run([`${topic}.dead`], async (batch) => void dead.push(...batch.records));
    await waitUntil('the parked record', () => dead.length > 0);
    expect(dead).toHaveLength(1);
    expect(numberOf(dead[0]!)).toBe(37);
    expect(dead[0]!.headers).toMatchObject({
      'dead-code': 'body_unreadable',
      'dead-topic': topic,
      'dead-partition': '0',
      'dead-offset': '37',
    });
    expect(dead[0]!.headers['dead-reason']).not.toContain('15112345678');
  });

  it('waits for what a handler needs, and parks nothing', async () => {
    const topic = await newTopic(1);
    await producer.send(topic, 0, records(0, 20));
    let calls = 0;
    const done: number[] = [];
    await batchConsumer().run([topic], async (batch) => {
      if (++calls < 6) throw new PunctualError('database_unavailable', 'away', { retriable: true });
      done.push(...batch.records.map(numberOf));
    });
    await waitUntil('all after the outage', () => done.length === 20, { deadlineMs: 20_000 });
    expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
    await producer.send(`${topic}.dead`, 0, records(99, 100));
    const dead: number[] = [];
    await batchConsumer().run([`${topic}.dead`], async (batch) => void dead.push(...batch.records.map(numberOf)));
    await waitUntil('the marker', () => dead.length > 0);
    expect(dead).toEqual([99]);
  });

  it('shares the partitions with a second member, loses nothing, and tells handlers to stop when it is stopped', async () => {
    const topic = await newTopic();
    const groupId = `${prefix}shared`;
    const seen = new Set<number>();
    const handle = async (batch: { records: InRecord[] }) => batch.records.forEach((record) => seen.add(numberOf(record)));
    const one = batchConsumer({ groupId });
    await one.run([topic], handle);
    let from = 0;
    const produce = async () => {
      await Promise.all(
        Array.from({ length: PARTITIONS }, (_, p) => producer.send(topic, p, records(from + p * 50, from + (p + 1) * 50))),
      );
      from += PARTITIONS * 50;
    };
    await produce();
    const two = batchConsumer({ groupId });
    const joined = two.run([topic], handle);
    await produce();
    await joined;
    await waitUntil(
      'both have partitions',
      () => one.health.assigned.get(topic)?.length === 2 && two.health.assigned.get(topic)?.length === 2,
    );
    await produce();
    await waitUntil('all records', () => seen.size === from);
    expect(performance.now() - two.health.lastHeartbeatMs).toBeLessThan(6_000);
    expect(two.health.lastFetchMs).toBeGreaterThan(0);

    let told = false;
    const slow = batchConsumer();
    let working = false;
    await slow.run([topic], (batch) => {
      working = true;
      return new Promise((resolve) => {
        batch.signal.addEventListener('abort', () => {
          told = true;
          resolve();
        });
      });
    });
    await waitUntil('the handler works', () => working);
    await slow.stop();
    expect(told).toBe(true);
  });
});

describe('handover consumer', () => {
  it('commits only what is finished without a gap, whatever the order', async () => {
    const topic = await newTopic(1);
    const groupId = `${prefix}handover`;
    await producer.send(topic, 0, records(0, 100));
    const one = handoverConsumer({ groupId });
    const seen: InRecord[] = [];
    await one.run([topic], {
      onRecords: (batch) => void seen.push(...batch.records),
      onAssigned: () => undefined,
      onRevoked: () => undefined,
    });
    await waitUntil('all handed over', () => seen.length === 100);
    for (const { offset } of [...seen].reverse()) if (offset !== 42n && offset < 90n) one.finished(topic, 0, offset);
    await one.stop();

    const again: number[] = [];
    const two = handoverConsumer({ groupId });
    await two.run([topic], {
      onRecords: (batch) => void again.push(...batch.records.map(numberOf)),
      onAssigned: () => undefined,
      onRevoked: () => undefined,
    });
    await waitUntil('the rest', () => again.length >= 58);
    expect(again).toEqual(Array.from({ length: 58 }, (_, at) => 42 + at));
  });

  it('announces partitions before their records, and takes them back when another member joins', async () => {
    const topic = await newTopic();
    const groupId = `${prefix}moving`;
    const said: string[] = [];
    const one = handoverConsumer({ groupId });
    await one.run([topic], {
      onRecords: (batch) => void said.push(`records ${batch.partition}`),
      onAssigned: (_, partitions) => void said.push(`assigned ${partitions.join()}`),
      onRevoked: (_, partitions) => void said.push(`revoked ${partitions.join()}`),
    });
    await producer.send(topic, 1, records(0, 1));
    await waitUntil('a record', () => said.includes('records 1'));
    expect(said[0]).toBe('assigned 0,1,2,3');
    const two = handoverConsumer({ groupId });
    await two.run([topic], { onRecords: () => undefined, onAssigned: () => undefined, onRevoked: () => undefined });
    await waitUntil('two partitions each', () => one.health.assigned.get(topic)?.length === 2);
    expect(said.indexOf('revoked 0,1,2,3')).toBeGreaterThan(said.indexOf('records 1'));
    await two.stop();
    await waitUntil('all four again', () => one.health.assigned.get(topic)?.length === 4);
  });

  it('parks a record that its owner can not read, and finishes it', async () => {
    const topic = await newTopic(1);
    const groupId = `${prefix}unreadable`;
    await producer.send(topic, 0, records(0, 10));
    const taken = new Set<number>();
    const one = handoverConsumer({ groupId });
    await one.run([topic], {
      onRecords: (batch) => {
        for (const record of batch.records) {
          if (numberOf(record) === 4) throw new Error('unreadable');
          taken.add(numberOf(record));
          one.finished(topic, 0, record.offset);
        }
      },
      onAssigned: () => undefined,
      onRevoked: () => undefined,
    });
    const dead: number[] = [];
    await batchConsumer().run([`${topic}.dead`], async (batch) => void dead.push(...batch.records.map(numberOf)));
    await waitUntil('one parked, nine taken', () => dead.length === 1 && taken.size === 9);
    expect(dead).toEqual([4]);
  });
});

describe('without brokers', () => {
  it('waits, and goes on when they are there', async () => {
    const topic = await newTopic(1);
    const door = await closedDoor();
    const late = openProducer({ brokers: [`127.0.0.1:${door.port}`], clientId: 'late' });
    stops.push(() => late.close());
    let connected = false;
    const connecting = late.connect().then(() => (connected = true));
    await waitUntil('it knocks more than once', () => door.refused() > 1);
    expect(connected).toBe(false);
    await door.open();
    await connecting;
    await late.send(topic, 0, records(0, 1));
  });

  it('ends its waiting when it is closed', async () => {
    const door = await closedDoor();
    const late = openProducer({ brokers: [`127.0.0.1:${door.port}`], clientId: 'never' });
    const connecting = late.connect().catch(() => 'given up');
    await waitUntil('it knocks', () => door.refused() > 0);
    await late.close();
    expect(await connecting).toBe('given up');
  });
});

describe('admin', () => {
  it('creates what is missing and answers the real partition counts', async () => {
    const name = `${prefix}admin`;
    expect(await admin.ensureTopics([{ name, partitions: 3, config: { 'retention.ms': '60000' } }])).toEqual(
      new Map([[name, 3]]),
    );
    expect(await admin.ensureTopics([{ name, partitions: 5, config: {} }])).toEqual(new Map([[name, 3]]));
    expect(await admin.partitionCount(name)).toBe(3);
    await expect(admin.partitionCount(`${prefix}nothing`)).rejects.toMatchObject({ code: 'kafka_topic_unknown' });
    await admin.ping();
  });

  it('may be asked by several at once', async () => {
    const name = `${prefix}together`;
    const answers = await Promise.all([1, 2, 3].map(() => admin.ensureTopics([{ name, partitions: 2, config: {} }])));
    for (const answer of answers) expect(answer.get(name)).toBe(2);
  });
});

/** A port where nobody answers until it is opened; then it leads to the broker. */
async function closedDoor() {
  const [host, port] = brokers()[0]!.split(':') as [string, string];
  let open = false;
  let refused = 0;
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (!open) {
      refused++;
      socket.destroy();
      return;
    }
    const broker = connectSocket(Number(port), host);
    broker.on('error', () => socket.destroy());
    socket.pipe(broker).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(async () => void server.close());
  return { port: (server.address() as { port: number }).port, refused: () => refused, open: async () => void (open = true) };
}
