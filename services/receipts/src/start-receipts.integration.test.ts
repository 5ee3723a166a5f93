import { connect } from 'node:net';
import { Codec } from '#contracts/codec';
import type { Events } from '#contracts/events';
import { topicName } from '#contracts/topics';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer, BatchProducer, InRecord } from '#runtime/kafka/port';
import { silentLog } from '#runtime/log';
import { waitUntil } from '#runtime/wait-until';
import { createTopics, serverAddress, uniquePrefix, type TestTopics } from '../../../test-support/isolation';
import {
  CREDENTIALS_KEY,
  plans,
  recordsOf,
  signature,
  Stage,
  tells,
  TOKEN_KEY,
  tokenOf,
  VERIFY_TOKEN,
  webhookBody,
} from '../test-support/stage';
import { readConfig } from './config';
import { composeReceipts, type Receipts } from './start-receipts';

const codec = new Codec();
const prefix = uniquePrefix();
const told: Array<{ record: InRecord; topic: string }> = [];
let stage: Stage;
let topics: TestTopics;
let receipts: Receipts;
let producer: BatchProducer;
let consumer: BatchConsumer;

beforeAll(async () => {
  stage = await Stage.open();
  topics = await createTopics(prefix);
  const brokers = serverAddress('KAFKA_BROKERS').split(',');
  receipts = composeReceipts(
    readConfig({
      KAFKA_BROKERS: brokers.join(','),
      DATABASE_URL: stage.test.urlFor('punctual_receipts'),
      TOPIC_PREFIX: prefix,
      PORT: '0',
      LOG_LEVEL: 'silent',
      TOKEN_KEY: TOKEN_KEY.toString('base64'),
      CREDENTIALS_KEY: CREDENTIALS_KEY.toString('base64'),
      PROGRESS_EVERY_MS: '100',
    }),
    silentLog,
  );
  await receipts.lifecycle.start();
  producer = openProducer({ brokers, clientId: 'test' });
  await producer.connect();
  consumer = openBatchConsumer({ brokers, clientId: 'test', groupId: `${prefix}test` });
  await consumer.run([topicName(prefix, 'status'), topicName(prefix, 'receipts')], async ({ topic, records }) => {
    told.push(...records.map((record) => ({ record, topic })));
  });
});

afterAll(async () => {
  await consumer?.stop();
  await producer?.close();
  await receipts?.lifecycle.stop();
  await topics?.drop();
  await stage?.close();
});

const endpoint = (number: { endpointId: string }) => `${receipts.origin()}/webhooks/whatsapp/${number.endpointId}`;
const post = (number: { endpointId: string }, body: Buffer, headers: Record<string, string>) =>
  fetch(endpoint(number), {
    method: 'POST',
    body: new Uint8Array(body),
    headers: { 'content-type': 'application/json', ...headers },
  });

it('takes a signed webhook and a sender’s facts all the way to public events', async () => {
  const number = await stage.number();
  const run = await stage.campaign(2);
  const send = async (topic: 'runs' | 'deliveries', one: Parameters<typeof recordsOf>[2], key: Buffer) => {
    const { topic: name, partition, records } = recordsOf(prefix, topic, one, key, codec);
    await producer.send(name, partition, records);
  };
  await send('runs', [plans.planned(run)], run.runId);
  await send('deliveries', [tells.submitted(run, 0, { wamid: 'wamid.zero' })], run.occurrence(0));
  await send('deliveries', [tells.failed(run, 1)], run.occurrence(1));
  const body = webhookBody([
    { wamid: 'wamid.zero', token: tokenOf(run, 0), status: 'delivered', at: Math.floor(run.dueAt / 1000) + 5 },
  ]);
  const answer = await post(number, body, { 'x-hub-signature-256': signature(body) });
  expect([answer.status, await answer.text()]).toEqual([200, '']);

  await waitUntil('the message to be delivered', async () => (await stage.counts(run)).delivered === 1);
  expect(await stage.counts(run)).toEqual({ delivered: 1, 'failed/template_parameters': 1 });
  const events = () => told.map(({ record }) => codec.decode(record.value));
  const completed = await waitUntil('the end of the run', () => events().find(({ name }) => name === 'RunCompleted'));
  expect(completed.event).toMatchObject({ outcome: 'partly_failed', total: 2, correction: false, status: 'completed' });
  const delivered = await waitUntil('the status event', () =>
    told.find(({ record }) => {
      const { name, event } = codec.decode(record.value);
      return name === 'MessageStatusChanged' && (event as Events['MessageStatusChanged']).status === 'delivered';
    }),
  );
  expect(delivered.record.key).toEqual(run.occurrence(0));
  expect(delivered.record.headers).toMatchObject({
    ce_specversion: '1.0',
    ce_type: 'punctual.message.status_changed',
    'content-type': 'application/avro',
  });

  // Of a message whose answer the sender has not told yet, it hears what its provider says.
  const other = await stage.campaign(1);
  const early = webhookBody([
    { wamid: 'wamid.early', token: tokenOf(other, 0), status: 'sent', at: Math.floor(other.dueAt / 1000) },
  ]);
  expect((await post(number, early, { 'x-hub-signature-256': signature(early) })).status).toBe(200);
  await waitUntil('the normalised evidence', () => events().some(({ name }) => name === 'ReceiptRecorded'));
  const receipts = events().filter(({ name }) => name === 'ReceiptRecorded');
  expect(receipts).toMatchObject([{ event: { occurrenceId: other.occurrence(0), kind: 'sent' } }]);
});

it('answers the verification of Meta only for the right token', async () => {
  const number = await stage.number();
  const get = (query: Record<string, string>) => fetch(`${endpoint(number)}?${new URLSearchParams(query).toString()}`);
  const right = { 'hub.mode': 'subscribe', 'hub.challenge': '1158201444', 'hub.verify_token': VERIFY_TOKEN };
  const answer = await get(right);
  expect([answer.status, answer.headers.get('content-type')?.split(';')[0], await answer.text()]).toEqual([
    200,
    'text/plain',
    '1158201444',
  ]);
  expect((await get({ ...right, 'hub.verify_token': 'punctual-verify-2' })).status).toBe(403);
  expect((await get({ ...right, 'hub.mode': 'unsubscribe' })).status).toBe(403);
  expect((await fetch(`${receipts.origin()}/webhooks/whatsapp/num_none?hub.mode=subscribe`)).status).toBe(404);
});

it('refuses a body that is not signed by the app of the number, and takes one after the secret was changed', async () => {
  const number = await stage.number();
  const body = webhookBody([]);
  expect((await post(number, body, {})).status).toBe(401);
  expect((await post(number, body, { 'x-hub-signature-256': signature(body, 'another secret') })).status).toBe(403);
  expect((await post(number, Buffer.from(`${body.toString()} `), { 'x-hub-signature-256': signature(body) })).status).toBe(403);
  await stage.setAppSecret(number, 'another secret');
  await waitUntil(
    'the new secret',
    async () => (await post(number, body, { 'x-hub-signature-256': signature(body, 'another secret') })).status === 200,
  );
  expect(
    (await post({ endpointId: 'num_01h455vb4pex5vsknk084sn02q' }, body, { 'x-hub-signature-256': signature(body) })).status,
  ).toBe(404);
});

it('takes a body of nearly 4 MB and none above', async () => {
  const number = await stage.number();
  const run = await stage.campaign(1);
  const padded = (size: number) => {
    const body = webhookBody([{ token: tokenOf(run, 0), status: 'sent', at: Math.floor(run.dueAt / 1000) }]);
    return Buffer.concat([body, Buffer.alloc(size - body.length, ' ')]);
  };
  const large = padded(4 * 1024 * 1024 - 1);
  expect((await post(number, large, { 'x-hub-signature-256': signature(large) })).status).toBe(200);
  await waitUntil('what it says', async () => (await stage.messages(run)).length === 1);
  const tooLarge = padded(4 * 1024 * 1024 + 1);
  expect((await post(number, tooLarge, { 'x-hub-signature-256': signature(tooLarge) })).status).toBe(413);
});

it('tells who sends too much so, even if that one looks only when all is sent', async () => {
  const number = await stage.number();
  const size = 16 * 1024 * 1024;
  for (let round = 0; round < 3; round++) {
    const { hostname, port } = new URL(receipts.origin());
    const socket = connect(Number(port), hostname);
    let text = '';
    let error: string | undefined;
    socket.on('data', (data) => (text += data.toString()));
    socket.on('error', (raised: NodeJS.ErrnoException) => (error = raised.code));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.pause();
    socket.write(`POST /webhooks/whatsapp/${number.endpointId} HTTP/1.1\r\nhost: x\r\ncontent-length: ${size}\r\n\r\n`);
    socket.write(Buffer.alloc(size), () => socket.resume());
    await closed;
    expect([error, text]).toEqual([undefined, expect.stringMatching(/^HTTP\/1\.1 413 /)]);
  }
});
