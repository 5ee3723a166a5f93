import { join } from 'node:path';
import { Codec } from '#contracts/codec';
import { topicName, topicSpecs } from '#contracts/topics';
import { startKafka, type RunningKafka } from '#local-stack/start-kafka';
import { projectRoot } from '#local-stack/project-root';
import { systemClock } from '#runtime/clock';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer, BatchProducer } from '#runtime/kafka/port';
import { silentLog } from '#runtime/log';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { waitUntil } from '#runtime/wait-until';
import { createTestDatabase, uniquePrefix, type TestDatabase } from '../../../../test-support/isolation';
import { TOKEN_KEY, webhookBody } from '../../test-support/stage';
import { readRecord } from '../projection/read-record';
import { WebhookIntake } from './keep-webhook';
import { WebhookSpool } from './webhook-spool';

const codec = new Codec();
const prefix = uniquePrefix();
const topic = topicName(prefix, 'webhooks');
const number = { numberId: 'n', endpointId: 'num_test', provider: 'whatsapp_cloud', appSecret: null, verifyToken: null };
const received: number[] = [];
let kafka: RunningKafka;
let test: TestDatabase;
let database: PostgresDatabase;
let producer: BatchProducer;
let consumer: BatchConsumer;
let intake: WebhookIntake;

beforeAll(async () => {
  // A broker of its own: this one is stopped under the service.
  kafka = await startKafka({ folder: join(projectRoot(), '.punctual', `receipts-${prefix}`), removeOnStop: true });
  test = await createTestDatabase();
  database = await openDatabase({ url: test.urlFor('punctual_receipts'), name: 'intake-test' });
  const options = { brokers: kafka.brokers.split(','), clientId: 'intake-test' };
  const admin = await openAdmin(options);
  const counts = await admin.ensureTopics(topicSpecs(prefix));
  await admin.close();
  producer = openProducer(options);
  await producer.connect();
  consumer = openBatchConsumer({ ...options, groupId: `${prefix}intake` });
  await consumer.run([topic], async ({ records }) => {
    for (const record of records) {
      const read = readRecord(codec, TOKEN_KEY, record, () => undefined);
      if (read.about === 'evidence') received.push(read.nameless[0]!.providerAt / 1_000);
    }
  });
  intake = new WebhookIntake({
    codec,
    producer,
    spool: new WebhookSpool(database),
    clock: systemClock,
    log: silentLog,
    topic,
    partitions: counts.get(topic)!,
    patienceMs: 500,
  });
}, 120_000);

afterAll(async () => {
  kafka?.resume(1);
  await consumer?.stop();
  await producer?.close();
  await database?.close();
  await test?.drop();
  await kafka?.stop();
});

const body = (at: number) => webhookBody([{ wamid: 'wamid.one', status: 'sent', at }]);
/** More than goes into the topic as it came. */
const largeBody = (at: number) => Buffer.concat([body(at), Buffer.alloc(600 * 1024, ' ')]);
/** A broker that has just been started, or woken, may be slower than the patience of this test. */
const keptInKafka = (at: number) =>
  waitUntil(
    'Kafka to acknowledge in time',
    async () => {
      while ((await intake.relayOnce()) > 0);
      return (await intake.keep(number, body(at))) === 'kafka';
    },
    { deadlineMs: 60_000 },
  );
const spooled = async () => (await database.pool.query('SELECT 1 FROM receipts.webhook_spool')).rowCount;

it('keeps webhooks in Kafka, in PostgreSQL while Kafka does not acknowledge, and brings those after; none is lost', async () => {
  await keptInKafka(1);
  expect(await intake.keep(number, largeBody(10))).toBe('kafka');
  await waitUntil('the first webhooks', () => received.includes(1) && received.includes(10));
  expect(await spooled()).toBe(0);

  kafka.pause(1);
  const started = performance.now();
  expect(await intake.keep(number, body(2))).toBe('spool');
  expect(performance.now() - started).toBeGreaterThanOrEqual(500);
  expect(intake.doubtsKafka).toBe(true);
  const kept = await Promise.all(Array.from({ length: 50 }, (_, place) => intake.keep(number, body(100 + place))));
  expect(new Set(kept)).toEqual(new Set(['spool']));
  expect(await intake.keep(number, largeBody(11))).toBe('spool');
  expect(await spooled()).toBe(52);

  kafka.resume(1);
  await waitUntil('the spool to be relayed', async () => (await intake.relayOnce()) === 0 && (await spooled()) === 0, {
    deadlineMs: 60_000,
  });
  expect(intake.doubtsKafka).toBe(false);
  await keptInKafka(3);
  // The second was given to Kafka and to PostgreSQL: twice is right, never is not.
  await waitUntil('all webhooks', () => new Set(received).size === 55, { deadlineMs: 60_000 });
}, 120_000);

it('says so when it can keep a webhook nowhere', async () => {
  kafka.pause(1);
  const closed = await openDatabase({ url: test.urlFor('punctual_receipts'), name: 'intake-closed' });
  await closed.close();
  const homeless = new WebhookIntake({
    codec,
    producer,
    spool: new WebhookSpool(closed),
    clock: systemClock,
    log: silentLog,
    topic,
    partitions: 6,
    patienceMs: 200,
  });
  expect(await homeless.keep(number, body(4))).toBe('nowhere');
}, 60_000);
