import { Client } from 'pg';
import { createTestDatabase, serverAddress, uniquePrefix, type TestDatabase } from '../../../../test-support/isolation';
import { openAdmin } from '../kafka/open-admin';
import { openBatchConsumer } from '../kafka/open-batch-consumer';
import { openProducer } from '../kafka/open-producer';
import type { BatchProducer, InRecord, OutRecord } from '../kafka/port';
import { openDatabase, type PostgresDatabase } from '../postgres/open-database';
import { waitUntil } from '../wait-until';
import { OutboxRelay, type OutboxOptions } from './outbox-relay';

jest.setTimeout(60_000);

const SCHEMA = 'box';
const PARTITIONS = 4;
const TABLES = `
  CREATE SCHEMA box;
  CREATE TABLE box.outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lane int NOT NULL, topic text NOT NULL, key bytea NOT NULL,
    headers jsonb, value bytea, draft jsonb
  );
  CREATE INDEX outbox_lane ON box.outbox (lane, id);
  CREATE TABLE box.outbox_parked (
    id bigint PRIMARY KEY, lane int NOT NULL, topic text NOT NULL, key bytea NOT NULL, headers jsonb, value bytea, draft jsonb,
    reason text NOT NULL, parked_at timestamptz NOT NULL DEFAULT now()
  );`;

const prefix = uniquePrefix();
const brokers = () => serverAddress('KAFKA_BROKERS').split(',');
const stops: (() => Promise<void>)[] = [];
let test: TestDatabase;
let database: PostgresDatabase;
let producer: BatchProducer;
let sql: Client;
let made = 0;
let topic = '';

beforeAll(async () => {
  test = await createTestDatabase({ migrated: false });
  sql = new Client({ connectionString: test.adminUrl });
  await sql.connect();
  await sql.query(TABLES);
  database = await openDatabase({ url: test.adminUrl, name: 'outbox-test' });
  producer = openProducer({ brokers: brokers(), clientId: 'outbox-test' });
});

beforeEach(async () => {
  topic = `${prefix}${++made}`;
  const admin = await openAdmin({ brokers: brokers(), clientId: 'outbox-test' });
  await admin.ensureTopics([{ name: topic, partitions: PARTITIONS, config: {} }]);
  await admin.close();
  await sql.query('TRUNCATE box.outbox, box.outbox_parked');
});

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

afterAll(async () => {
  await producer.close();
  await database.close();
  await sql.end();
  await test.drop();
});

function relay(options: Partial<OutboxOptions> = {}): OutboxRelay {
  const opened = new OutboxRelay({ database, databaseUrl: test.adminUrl, schema: SCHEMA, producer, ...options });
  stops.push(() => opened.stop());
  return opened;
}

/** Rows `from` to `to`; the value says lane and number within the lane. */
async function write(lanes: number[], from: number, to: number): Promise<void> {
  await sql.query(
    `INSERT INTO box.outbox (lane, topic, key, value)
     SELECT l, $1, convert_to('k' || l, 'UTF8'), convert_to(l || ':' || n, 'UTF8')
     FROM generate_series($3::int, $4::int - 1) n, unnest($2::int[]) l ORDER BY n`,
    [topic, lanes, from, to],
  );
}

async function waiting(): Promise<number> {
  return (await sql.query<{ count: number }>('SELECT count(*)::int AS count FROM box.outbox')).rows[0]!.count;
}

async function readTopic(): Promise<{ seen: InRecord[]; byPartition: Map<number, string[]> }> {
  const seen: InRecord[] = [];
  const byPartition = new Map<number, string[]>();
  const consumer = openBatchConsumer({ brokers: brokers(), clientId: 'outbox-test', groupId: `${prefix}g${++made}` });
  stops.push(() => consumer.stop());
  await consumer.run([topic], async ({ partition, records }) => {
    seen.push(...records);
    byPartition.set(partition, [...(byPartition.get(partition) ?? []), ...records.map(({ value }) => value.toString())]);
  });
  return { seen, byPartition };
}

const expectedLane = (lane: number, count: number) => Array.from({ length: count }, (_, n) => `${lane}:${n}`);

it('relays every row to the partition of its lane, in order, and deletes it', async () => {
  await write([0, 1, 2, 3], 0, 700);
  const one = relay();
  expect(await one.relayOnce()).toBe(4 * 500);
  expect(await one.relayOnce()).toBe(4 * 200);
  expect(await one.relayOnce()).toBe(0);
  expect(await waiting()).toBe(0);
  const { byPartition, seen } = await readTopic();
  await waitUntil('all records', () => seen.length === 2_800);
  for (const lane of [0, 1, 2, 3]) expect(byPartition.get(lane)).toEqual(expectedLane(lane, 700));
});

it('computes the partition of negative lanes, encodes drafts, and names topics', async () => {
  await sql.query(
    `INSERT INTO box.outbox (lane, topic, key, draft, headers) VALUES (-1, 'short', 'abc', '{"n": 7}', '{"traceparent": "t"}'), (-2, 'short', 'xyz', '{"n": 8}', NULL)`,
  );
  const one = relay({
    topicName: (name) => (name === 'short' ? topic : name),
    partitionOf: (_, key) => (key.toString() === 'abc' ? 2 : 3),
    encode: (_, draft) => ({ value: Buffer.from(`n=${(draft as { n: number }).n}`), headers: { 'content-type': 'test' } }),
  });
  expect(await one.relayOnce()).toBe(2);
  const { byPartition, seen } = await readTopic();
  await waitUntil('both', () => seen.length === 2);
  expect(byPartition).toEqual(
    new Map([
      [2, ['n=7']],
      [3, ['n=8']],
    ]),
  );
  expect(seen.find(({ value }) => value.toString() === 'n=7')!.headers).toEqual({ traceparent: 't', 'content-type': 'test' });
});

it('puts rows aside that can not be encoded, with the reason, and relays their neighbours', async () => {
  await write([1], 0, 3);
  await sql.query(`INSERT INTO box.outbox (lane, topic, key, draft) VALUES (1, $1, 'k', '{"bad": true}')`, [topic]);
  await sql.query(
    `INSERT INTO box.outbox (lane, topic, key, value) VALUES (1, $1, 'k', convert_to(repeat('x', 1000000), 'UTF8'))`,
    [topic],
  );
  await write([1], 3, 6);
  const one = relay({
    encode: () => {
      throw new Error('no such event');
    },
  });
  await one.relayOnce();
  expect(await waiting()).toBe(0);
  const { rows } = await sql.query<{ reason: string; draft: unknown }>('SELECT reason, draft FROM box.outbox_parked ORDER BY id');
  expect(rows.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('no such event'),
    expect.stringContaining('1000 kB'),
  ]);
  expect(rows[0]!.draft).toEqual({ bad: true });
  const { byPartition, seen } = await readTopic();
  await waitUntil('the good ones', () => seen.length === 6);
  expect(byPartition.get(1)).toEqual(expectedLane(1, 6));
});

it('goes on with other rows where even parking fails', async () => {
  await sql.query('ALTER TABLE box.outbox_parked RENAME TO elsewhere');
  try {
    await sql.query(`INSERT INTO box.outbox (lane, topic, key, draft) VALUES (0, $1, 'k', '{}')`, [topic]);
    await write([0], 0, 5);
    const one = relay();
    await one.relayOnce();
    expect(await waiting()).toBe(1);
    expect(await one.relayOnce()).toBe(0);
  } finally {
    await sql.query('ALTER TABLE box.elsewhere RENAME TO outbox_parked');
  }
});

it('sends again, in order, what was sent but not deleted when the process died', async () => {
  await write([0], 0, 300);
  // The relay dies after the acknowledgement: the promise of the send never comes back.
  let reached = false;
  const dying: BatchProducer = {
    connect: () => producer.connect(),
    close: async () => undefined,
    send: async (to: string, partition: number, records: OutRecord[]) => {
      await producer.send(to, partition, records);
      reached = true;
      await new Promise(() => undefined);
    },
  };
  const first = relay({ producer: dying, batch: 100 });
  void first.relayOnce();
  await waitUntil('the first hundred are in Kafka', () => reached);
  expect(await waiting()).toBe(300);
  await first.stop();
  expect(await waiting()).toBe(300);
  const second = relay({ batch: 100 });
  while ((await second.relayOnce()) > 0);
  expect(await waiting()).toBe(0);
  const { byPartition, seen } = await readTopic();
  await waitUntil('all, and the first hundred twice', () => seen.length === 400);
  expect(byPartition.get(0)).toEqual([...expectedLane(0, 100), ...expectedLane(0, 300)]);
});

it('shares the lanes among instances, each lane with one, and hands them over when an instance goes', async () => {
  const [one, two] = [relay(), relay()];
  await one.start();
  await two.start();
  await waitUntil('eight each', () => one.groups.length === 8 && two.groups.length === 8);
  expect(new Set([...one.groups, ...two.groups]).size).toBe(16);
  for (let round = 0; round < 10; round++) await write([0, 1, 2, 3], round * 50, (round + 1) * 50);
  one.wake();
  await waitUntil('all relayed', async () => (await waiting()) === 0);
  await one.stop();
  await waitUntil('all with the second', () => two.groups.length === 16);
  await write([0, 1, 2, 3], 500, 510);
  await waitUntil('relayed by the second', async () => (await waiting()) === 0);
  const { byPartition, seen } = await readTopic();
  await waitUntil('every row once', () => seen.length === 2_040);
  for (const lane of [0, 1, 2, 3]) expect(byPartition.get(lane)).toEqual(expectedLane(lane, 510));
});

it('gets its lanes back after its connection was cut, and relays what came meanwhile', async () => {
  const one = relay();
  await one.start();
  await waitUntil('all lanes', () => one.groups.length === 16);
  await killConnections();
  await write([2], 0, 10);
  await waitUntil('relayed after the cut', async () => (await waiting()) === 0);
  expect(one.groups).toHaveLength(16);
});

it('is woken by NOTIFY and by its own process', async () => {
  const one = relay();
  await one.start();
  await waitUntil('all lanes', () => one.groups.length === 16);
  await write([0], 0, 1);
  await sql.query('NOTIFY box_outbox');
  await waitUntil('relayed', async () => (await waiting()) === 0);
});

it('relays nothing without a lane of its own', async () => {
  const [owner, guest] = [relay(), relay()];
  await owner.relayOnce();
  await write([0, 1], 0, 5);
  expect(await guest.relayOnce()).toBe(0);
  expect(await owner.relayOnce()).toBe(10);
});

async function killConnections(): Promise<void> {
  await sql.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outbox-box' AND datname = current_database()`,
  );
}
