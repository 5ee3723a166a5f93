import { join } from 'node:path';
import { Kafka, logLevel, type Admin } from 'kafkajs';
import { waitUntil } from '#runtime/wait-until';
import { projectRoot } from './project-root';
import { startKafka, type RunningKafka } from './start-kafka';

const TOPIC = 'outlives-a-broker';

describe('a cluster of three brokers', () => {
  let kafka: RunningKafka;
  let admin: Admin;
  let client: Kafka;

  beforeAll(async () => {
    kafka = await startKafka({
      folder: join(projectRoot(), '.punctual', `kafka-test-${process.pid}`),
      brokers: 3,
      removeOnStop: true,
      // The default of 9 s only makes the wait for a new leader longer.
      properties: { 'broker.session.timeout.ms': '3000' },
    });
    client = new Kafka({
      clientId: 'cluster-test',
      brokers: kafka.brokers.split(','),
      requestTimeout: 2_000,
      logLevel: logLevel.NOTHING,
    });
    admin = client.admin();
    await admin.connect();
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic: TOPIC, numPartitions: 6, replicationFactor: -1 }] });
  }, 120_000);

  afterAll(async () => {
    await admin?.disconnect();
    await kafka?.stop();
  }, 60_000);

  const partitions = async () => (await admin.fetchTopicMetadata({ topics: [TOPIC] })).topics[0]!.partitions;
  const send = async (value: string): Promise<void> => {
    const producer = client.producer({ idempotent: true });
    await producer.connect();
    await producer.send({ topic: TOPIC, acks: -1, messages: [0, 1, 2, 3, 4, 5].map((partition) => ({ partition, value })) });
    await producer.disconnect();
  };

  it('survives the loss of one broker and takes it back', async () => {
    expect((await partitions()).every(({ replicas }) => replicas.length === 3)).toBe(true);
    await send('before');
    const lost = (await partitions())[0]!.leader;

    await kafka.kill(lost);
    await waitUntil(
      'every partition has a living leader and two replicas in sync',
      async () =>
        (await partitions()).every(({ leader, isr }) => leader > 0 && leader !== lost && isr.length === 2 && !isr.includes(lost)),
      { deadlineMs: 40_000, everyMs: 100 },
    );
    await send('while one is lost');

    const address = kafka.brokers;
    await kafka.restart(lost);
    await waitUntil(
      'all three replicas are in sync again',
      async () => (await partitions()).every(({ isr }) => isr.length === 3),
      {
        deadlineMs: 40_000,
        everyMs: 100,
      },
    );
    expect(kafka.brokers).toBe(address);
    const offsets = await admin.fetchTopicOffsets(TOPIC);
    expect(offsets.map(({ high }) => high)).toEqual(Array(6).fill('2'));
  }, 120_000);

  it('counts a paused broker out and, once it runs again, in', async () => {
    const paused = 3;
    kafka.pause(paused);
    try {
      await waitUntil(
        'the paused broker leads nothing',
        // The client may ask the paused broker, which answers only when it runs again: it is asked anew then.
        () =>
          partitions().then(
            (all) => all.every(({ leader, isr }) => leader !== paused && !isr.includes(paused)),
            () => false,
          ),
        { deadlineMs: 40_000, everyMs: 100 },
      );
    } finally {
      kafka.resume(paused);
    }
    await waitUntil('it is in sync again', async () => (await partitions()).every(({ isr }) => isr.includes(paused)), {
      deadlineMs: 40_000,
      everyMs: 100,
    });
  }, 120_000);

  it('names the brokers that there are when asked for another', () => {
    expect(() => kafka.pause(4)).toThrow('there is no Kafka broker 4, only 1, 2, 3');
  });
});
