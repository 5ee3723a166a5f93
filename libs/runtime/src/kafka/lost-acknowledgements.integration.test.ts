import { mkdtempSync } from 'node:fs';
import { createServer, connect as connectSocket, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pickPort } from '#local-stack/pick-port';
import { startKafka, type RunningKafka } from '#local-stack/start-kafka';
import { waitUntil } from '../wait-until';
import { kafkaClient, RETRY } from './connection';
import { openAdmin } from './open-admin';
import { openBatchConsumer } from './open-batch-consumer';
import { openProducer } from './open-producer';

jest.setTimeout(180_000);

const PRODUCE = 0;
const PARTITIONS = 3;
const RECORDS = 600;

let kafka: RunningKafka;
let door: LossyDoor;

beforeAll(async () => {
  door = await LossyDoor.open();
  kafka = await startKafka({
    folder: mkdtempSync(join(tmpdir(), 'lossy-')),
    port: door.target,
    removeOnStop: true,
    properties: { 'advertised.listeners': `PLAINTEXT://127.0.0.1:${door.port}` },
  });
});

afterAll(async () => {
  door.lose = () => false;
  await kafka?.stop();
  door.close();
});

afterEach(() => {
  door.lose = () => false;
  door.silently = false;
});

const brokers = () => [`127.0.0.1:${door.port}`];
const numbered = (number: number) => ({ key: Buffer.from('k'), value: Buffer.from(String(number)) });

async function newTopic(name: string): Promise<string> {
  const admin = await openAdmin({ brokers: brokers(), clientId: 'lossy' });
  await admin.ensureTopics([{ name, partitions: PARTITIONS, config: {} }]);
  await admin.close();
  return name;
}

/** What the log holds, per partition, after a marker that is sent last has arrived everywhere. */
async function logOf(topic: string): Promise<number[][]> {
  const marker = openProducer({ brokers: brokers(), clientId: 'marker' });
  for (let partition = 0; partition < PARTITIONS; partition++) await marker.send(topic, partition, [numbered(-1)]);
  await marker.close();
  const log: number[][] = Array.from({ length: PARTITIONS }, () => []);
  const consumer = openBatchConsumer({ brokers: brokers(), clientId: 'lossy', groupId: `${topic}-reader` });
  await consumer.run(
    [topic],
    async ({ partition, records }) => void log[partition]!.push(...records.map(({ value }) => Number(value.toString()))),
  );
  await waitUntil('the markers', () => log.every((numbers) => numbers.includes(-1)), { deadlineMs: 30_000 });
  await consumer.stop();
  return log.map((numbers) => numbers.filter((number) => number >= 0));
}

/** Every n-th answer to a produce request is thrown away, with its connection; the broker has written the records by then. */
const everyNth = (n: number) => {
  let answers = 0;
  return () => ++answers % n === 0;
};

it('loses, doubles and reorders nothing when one in eight acknowledgements is lost', async () => {
  const topic = await newTopic('kept');
  const producer = openProducer({ brokers: brokers(), clientId: 'careful' });
  await producer.connect();
  door.lose = everyNth(8);
  const sends: Promise<void>[] = [];
  for (let number = 0; number < RECORDS; number++) {
    for (let partition = 0; partition < PARTITIONS; partition++) sends.push(producer.send(topic, partition, [numbered(number)]));
    if (number % 5 === 0) await sends.at(-1);
  }
  await Promise.all(sends);
  expect(door.lost).toBeGreaterThan(10);
  door.lose = () => false;
  await producer.close();
  const whole = Array.from({ length: RECORDS }, (_, number) => number);
  expect(await logOf(topic)).toEqual([whole, whole, whole]);
});

it('gives up a producer that gets no answer, and the batch reaches its caller and the log through another', async () => {
  const topic = await newTopic('unanswered');
  const producer = openProducer({ brokers: brokers(), clientId: 'patient', answerWithinMs: 500 });
  await producer.connect();
  door.silently = true;
  let answers = 0;
  door.lose = () => ++answers === 1;
  let acknowledged = false;
  const sending = producer.send(topic, 0, [numbered(1)]).then(() => (acknowledged = true));
  // Without the limit the client waits for 10 s before it asks again.
  await waitUntil('the acknowledgement', () => acknowledged, { deadlineMs: 9_000 });
  await sending;
  await producer.send(topic, 0, [numbered(2)]);
  await producer.close();
  const [log] = await logOf(topic);
  expect([...new Set(log)]).toEqual([1, 2]);
});

it('would notice: the same client with sends side by side loses or doubles acknowledged records', async () => {
  const topic = await newTopic('damaged');
  const producer = kafkaClient({ brokers: brokers(), clientId: 'careless' }).producer({ idempotent: true, retry: RETRY });
  await producer.connect();
  door.lose = everyNth(8);
  const acknowledged: number[] = [];
  for (let number = 0; number < 200; number += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, at) => {
        try {
          await producer.send({ topic, acks: -1, messages: [{ value: String(number + at), partition: 0 }] });
          acknowledged.push(number + at);
        } catch {
          // Rejected openly: no damage of the silent kind.
        }
      }),
    );
  }
  door.lose = () => false;
  await producer.disconnect();
  const [log] = await logOf(topic);
  const lost = acknowledged.filter((number) => !log!.includes(number)).length;
  const doubled = log!.length - new Set(log).size;
  expect(lost + doubled).toBeGreaterThan(0);
});

/** A port before a broker that can lose the answers to produce requests. The broker must advertise it as its own address. */
class LossyDoor {
  lost = 0;
  lose: () => boolean = () => false;
  /** A lost answer leaves its connection open, as a broker does that forgot the request. */
  silently = false;
  port = 0;
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((client) => this.accept(client));

  private constructor(readonly target: number) {}

  static async open(): Promise<LossyDoor> {
    const opened = new LossyDoor(await pickPort());
    await new Promise<void>((resolve) => opened.server.listen(0, '127.0.0.1', resolve));
    opened.port = (opened.server.address() as { port: number }).port;
    return opened;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private accept(client: Socket): void {
    const broker = connectSocket(this.target, '127.0.0.1');
    const produces = new Set<number>();
    const end = () => {
      client.destroy();
      broker.destroy();
    };
    for (const socket of [client, broker]) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', () => (this.sockets.delete(socket), end()));
    }
    // Request: length, api key, api version, correlation id. Answer: length, correlation id.
    onFrames(client, (frame) => {
      if (frame.readInt16BE(4) === PRODUCE) produces.add(frame.readInt32BE(8));
      broker.write(frame);
    });
    onFrames(broker, (frame) => {
      if (produces.delete(frame.readInt32BE(4)) && this.lose()) {
        this.lost++;
        if (!this.silently) end();
      } else client.write(frame);
    });
  }
}

function onFrames(socket: Socket, onFrame: (frame: Buffer) => void): void {
  let pending = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 4 && pending.length >= 4 + pending.readInt32BE(0)) {
      const size = 4 + pending.readInt32BE(0);
      onFrame(pending.subarray(0, size));
      pending = pending.subarray(size);
    }
  });
}
