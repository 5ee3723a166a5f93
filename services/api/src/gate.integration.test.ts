import { Client } from 'pg';
import { Codec } from '#contracts/codec';
import { formatId, occurrenceId, parseId, uuidText } from '#contracts/ids';
import { partitionFor } from '#contracts/murmur2';
import { topicName } from '#contracts/topics';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import type { InRecord } from '#runtime/kafka/port';
import { waitUntil } from '#runtime/wait-until';
import { serverAddress } from '../../../test-support/isolation';
import { createTenantWithNumber, startTestApi, type TestApi } from './test-api';

let api: TestApi;
let key: string;
let numberId: string;
let sql: Client;

beforeAll(async () => {
  api = await startTestApi();
  ({ key, numberId } = await createTenantWithNumber(api));
  sql = new Client({ connectionString: api.database.adminUrl });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  await api?.stop();
});

let next = 0;
async function campaign(recipients: number) {
  const { status, body } = await api.request('POST', '/v1/schedules', {
    key,
    body: {
      from: { number: 'wa-main' },
      category: 'utility',
      content: { text: 'Hello' },
      recipients: Array.from({ length: recipients }, () => ({ to: `+4915124${String(next++).padStart(6, '0')}` })),
      when: { at: '2037-06-01T10:00:00', timeZone: 'Europe/Berlin' },
      externalId: `gate-${next}`,
      labels: { kind: 'gate' },
    },
  });
  expect(status).toBe(201);
  const ids = body.recipients.map((one: { messageId: string }) => parseId('msg', one.messageId)!) as Buffer[];
  return {
    id: body.id as string,
    uuid: uuidText(parseId('sch', body.id)!),
    path: `/v1/schedules/${body.id}`,
    run: body.next[0].runId as string,
    ids,
  };
}
type Campaign = Awaited<ReturnType<typeof campaign>>;

/** A claim as the sender leaves it behind. */
async function claim(of: Campaign, position: number, state: string, step = 2) {
  const ended = ['refused', 'cancelled', 'expired'].includes(state);
  await sql.query(
    `INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, step, due_at, deadline, sweep_at,
       next_attempt_at, state, reason, error_code)
     VALUES ($1, $2, $3, 1, $4, 5, $5, $6, now(), $7, $8, $9, $10, $11, $12)`,
    [
      of.ids[position],
      of.uuid,
      uuidText(parseId('num', numberId)!),
      position,
      ended ? 0 : 1,
      step,
      ended ? null : new Date(),
      state === 'sending' || state === 'uncertain' ? new Date(Date.now() + 60_000) : null,
      state === 'retry_wait' ? new Date(Date.now() + 60_000) : null,
      state,
      ended || state === 'uncertain' ? 'timeout' : null,
      state === 'failed' ? 'recipient_unreachable' : null,
    ],
  );
}

describe('the receipt of a cancel', () => {
  it('adds up whatever the messages are doing', async () => {
    const of = await campaign(9);
    const states = ['sending', 'accepted', 'retry_wait', 'uncertain', 'unconfirmed', 'failed', 'expired'];
    for (const [position, state] of states.entries()) await claim(of, position, state);
    const paused = await api.request('POST', `${of.path}/pause`, { key });
    expect(paused.body).toMatchObject({ total: 9, held: 3, inFlight: 1, submitted: 1, uncertain: 2, ended: 2 });
    const receipt = await api.request('POST', `${of.path}/cancel`, { key });
    const expected = { outcome: 'partly_prevented', total: 9, prevented: 3, inFlight: 1, submitted: 1, uncertain: 2, ended: 2 };
    expect(receipt.body).toMatchObject(expected);
    // The retry was ended by the cancel; counted again it would be among the ended.
    expect((await api.request('GET', `/v1/messages/${messageId(of, 2)}`, { key })).body).toMatchObject({
      status: 'cancelled',
      final: true,
    });
    const replies = await Promise.all(Array.from({ length: 4 }, () => api.request('POST', `${of.path}/cancel`, { key })));
    for (const reply of replies) expect(reply.body).toEqual(receipt.body);
  });

  it('is one and the same for cancels that come at once', async () => {
    const of = await campaign(3);
    await claim(of, 0, 'retry_wait');
    const replies = await Promise.all(Array.from({ length: 5 }, () => api.request('POST', `${of.path}/cancel`, { key })));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(replies[0]!.body).toMatchObject({ prevented: 3, ended: 0, version: 2 });
    const stream = await sql.query('SELECT name FROM api.schedule_event WHERE schedule_id = $1 ORDER BY version', [of.uuid]);
    expect(stream.rows.map(({ name }) => name)).toEqual(['requested', 'cancelled']);
  });
});

describe('a revision', () => {
  it('can change anything but the audience once messages are claimed', async () => {
    const of = await campaign(2);
    await claim(of, 0, 'accepted');
    const patch = (body: object) => api.request('PATCH', of.path, { key, body, headers: { 'if-match': '*' } });
    const refused = await patch({ recipients: [{ to: '+4915129999999' }] });
    expect(refused.status).toBe(409);
    expect(refused.body.code).toBe('audience_in_use');
    const revised = await patch({ content: { text: 'Bye' } });
    expect(revised.body).toMatchObject({ version: 2, revision: 2, change: { alreadyAtGate: 1, willUseRevision: 1 } });
    const { rows } = await sql.query(
      'SELECT revision, content FROM api.content_public WHERE schedule_id = $1 ORDER BY revision',
      [of.uuid],
    );
    expect(rows).toEqual([
      { revision: 1, content: { text: 'Hello' } },
      { revision: 2, content: { text: 'Bye' } },
    ]);
  });
});

describe('a message', () => {
  it('is read live from the gate, before any event has arrived', async () => {
    const of = await campaign(4);
    await claim(of, 0, 'sending', 1);
    await claim(of, 1, 'accepted');
    await claim(of, 2, 'failed');
    const states = await Promise.all(
      [0, 1, 2, 3].map((position) => api.request('GET', `/v1/messages/${messageId(of, position)}`, { key })),
    );
    expect(states.map(({ body }) => [body.status, body.reachedProvider])).toEqual([
      ['sending', 'maybe'],
      ['submitted', 'yes'],
      ['failed', 'no'],
      ['scheduled', 'no'],
    ]);
    expect(states[2]!.body.error).toMatchObject({ code: 'recipient_unreachable', retryable: false });
    const run = await api.request('GET', `/v1/runs/${of.run}`, { key });
    expect(run.body.status).toBe('running');
    expect(run.body.counts).toMatchObject({ sending: 1 });
    const sum = Object.values(run.body.counts as Record<string, number>).reduce((all, one) => all + one, 0);
    expect(sum).toBe(4);
    const failed = await api.request('GET', `/v1/runs/${of.run}/messages?status=failed&status=sending`, { key });
    expect(failed.body.data.map((one: { id: string }) => one.id)).toEqual([messageId(of, 0), messageId(of, 2)]);
  });

  it('can be cancelled by name until its attempt has begun', async () => {
    const of = await campaign(3);
    await claim(of, 0, 'accepted');
    await claim(of, 1, 'retry_wait');
    const late = await api.request('POST', `/v1/messages/${messageId(of, 0)}/cancel`, { key });
    expect(late.status).toBe(409);
    expect(late.body).toMatchObject({ code: 'too_late', messageStatus: 'submitted' });
    for (const position of [1, 2]) {
      const cancelled = await api.request('POST', `/v1/messages/${messageId(of, position)}/cancel`, { key });
      expect(cancelled.status).toBe(200);
      expect(cancelled.body).toMatchObject({ status: 'cancelled', final: true, reachedProvider: 'no' });
    }
    const receipt = await api.request('POST', `${of.path}/cancel`, { key });
    expect(receipt.body).toMatchObject({ outcome: 'nothing_prevented', submitted: 1, ended: 2 });
  });

  it('is not found under an id that is nearly right', async () => {
    const of = await campaign(1);
    const wrong = Buffer.from(of.ids[0]!);
    wrong[19]! ^= 1;
    expect((await api.request('GET', `/v1/messages/${text(wrong)}`, { key })).body.code).toBe('message_not_found');
    const otherRun = occurrenceId(Buffer.alloc(12, 7), of.ids[0]!.subarray(12));
    expect((await api.request('GET', `/v1/messages/${text(otherRun)}`, { key })).status).toBe(404);
    expect((await api.request('GET', `/v1/messages/${text(of.ids[0]!)}`, { key })).status).toBe(200);
  });
});

describe('a gate that is busy for long', () => {
  it('turns a change away with nothing done, and takes it afterwards', async () => {
    const of = await campaign(1);
    const holder = new Client({ connectionString: api.database.adminUrl });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT pg_advisory_xact_lock_shared(7001, sender.stripe($1))', [of.uuid]);
      const busy = await api.request('POST', `${of.path}/cancel`, { key });
      expect(busy.status).toBe(503);
      expect(busy.body.code).toBe('unavailable');
      expect(busy.headers.get('retry-after')).toBe('1');
      expect((await api.request('GET', of.path, { key })).body).toMatchObject({ status: 'active', version: 1 });
      await holder.query('COMMIT');
    } finally {
      await holder.end();
    }
    expect((await api.request('POST', `${of.path}/cancel`, { key })).body).toMatchObject({
      outcome: 'all_prevented',
      version: 2,
    });
  }, 30_000);
});

describe('what others are told', () => {
  it('comes to the topic in order, on the partition of the schedule, as CloudEvents', async () => {
    const of = await campaign(2);
    const headers = { 'x-correlation-id': 'order-12' };
    await api.request('POST', `${of.path}/pause`, { key, headers });
    await api.request('PATCH', of.path, { key, body: { priority: 2 }, headers: { 'if-match': '"2"' } });
    await api.request('POST', `${of.path}/resume`, { key });
    await api.request('POST', `${of.path}/cancel`, { key, body: { reason: 'rain' } });

    const topic = topicName(api.prefix, 'schedules');
    const consumer = openBatchConsumer({
      brokers: serverAddress('KAFKA_BROKERS').split(','),
      clientId: 'test',
      groupId: `${api.prefix}test`,
    });
    const received: Array<{ partition: number; record: InRecord }> = [];
    await consumer.run([topic], async ({ partition, records }) => {
      for (const record of records) if (record.key?.toString() === of.id) received.push({ partition, record });
    });
    try {
      await waitUntil('five events', () => received.length >= 5, { deadlineMs: 20_000 });
    } finally {
      await consumer.stop();
    }
    const codec = new Codec();
    const events = received.map(({ record }) => codec.decode(record.value));
    expect(events.map(({ name }) => name)).toEqual([
      'ScheduleRequested',
      'SchedulePaused',
      'ScheduleRevised',
      'ScheduleResumed',
      'ScheduleCancelled',
    ]);
    expect(events.map(({ event }) => (event as { version: number }).version)).toEqual([1, 2, 3, 4, 5]);
    expect(events[0]!.event).toMatchObject({
      scheduleId: of.id,
      numberId,
      recipients: 2,
      chunkCount: 1,
      labels: { kind: 'gate' },
      slots: [
        { slot: 'once', runId: of.run, local: '2037-06-01T10:00:00', timeZone: 'Europe/Berlin', rule: 'exact', validUntil: null },
      ],
    });
    expect(events[1]!.event).toMatchObject({ correlationId: 'order-12' });
    expect(events[2]!.event).toMatchObject({ revision: 2, priority: 2 });
    expect(events[4]!.event).toMatchObject({ reason: 'rain', revision: 2 });
    expect(new Set(received.map(({ partition }) => partition))).toEqual(new Set([partitionFor(of.id, 6)]));
    expect(received[0]!.record.headers).toMatchObject({
      ce_type: 'punctual.schedule.requested',
      ce_subject: of.id,
      ce_partitionkey: of.id,
      ce_sequence: '1'.padStart(20, '0'),
    });
  }, 40_000);
});

function messageId(of: Campaign, position: number): string {
  return text(of.ids[position]!);
}

function text(id: Buffer): string {
  return formatId('msg', id);
}
