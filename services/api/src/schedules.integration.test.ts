import { Client } from 'pg';
import { parseId, uuidText } from '#contracts/ids';
import { waitUntil } from '#runtime/wait-until';
import { replay } from './schedule/evolve';
import { createTenantWithNumber, startTestApi, type TestApi } from './test-api';

let api: TestApi;
let key: string;
let sql: Client;

beforeAll(async () => {
  api = await startTestApi();
  ({ key } = await createTenantWithNumber(api));
  sql = new Client({ connectionString: api.database.adminUrl });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  await api?.stop();
});

const template = {
  from: { number: 'wa-main' },
  content: { template: { name: 'summer_sale', language: 'en_US', body: ['{{firstName}}'] } },
  when: { at: '2037-03-29T02:30:00', timeZone: 'Europe/Berlin' },
};
const people = (count: number, first = 0) =>
  Array.from({ length: count }, (_, index) => ({
    to: `+4915123${String(first + index).padStart(6, '0')}`,
    ref: `customer-${first + index}`,
    parameters: { firstName: `Name ${index}` },
  }));

let nextPerson = 1_000;
function freshPeople(count: number) {
  nextPerson += count;
  return people(count, nextPerson - count);
}

const create = (body: object, headers: Record<string, string> = {}) =>
  api.request('POST', '/v1/schedules', { key, body, headers });

describe('creating a schedule', () => {
  it('answers what was sent, the resolved time, an id for each recipient and a forecast', async () => {
    const recipients = [...freshPeople(2), { to: 'no number', ref: 'broken' }];
    recipients.push({ ...recipients[0]!, ref: 'again' });
    const answer = await create({ ...template, recipients, onInvalidRecipient: 'skip', labels: { campaign: 'summer' } });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('etag')).toBe('"1"');
    expect(answer.headers.get('location')).toBe(`/v1/schedules/${answer.body.id}`);
    expect(answer.body).toMatchObject({
      ...template,
      status: 'active',
      version: 1,
      revision: 1,
      mode: 'test',
      category: 'marketing',
      audience: { accepted: 2, rejected: 1, duplicates: 1 },
      next: [
        {
          slot: 'once',
          timeZone: 'Europe/Berlin',
          local: '2037-03-29T03:30:00+02:00',
          at: '2037-03-29T01:30:00.000Z',
          rule: 'gap_shift',
        },
      ],
      forecast: { ratePerSecond: 80 },
    });
    expect(answer.body.recipients.map((one: { result: string }) => one.result)).toEqual([
      'accepted',
      'accepted',
      'rejected',
      'duplicate',
    ]);
    expect(answer.body.recipients[3].duplicateOf).toBe(0);
    expect(answer.body.warnings.map((one: { code: string }) => one.code)).toEqual(['category_assumed', 'template_unknown']);
  });

  it('writes the event with the change and relays it to Kafka', async () => {
    const answer = await create({ ...template, recipients: freshPeople(3) });
    const { rows } = await sql.query('SELECT name, data FROM api.schedule_event ORDER BY at DESC LIMIT 1');
    expect(rows[0].name).toBe('requested');
    expect(rows[0].data.externalId).toBeNull();
    await waitUntil('the outbox is empty', async () => (await sql.query('SELECT 1 FROM api.outbox')).rowCount === 0);
    expect((await sql.query('SELECT 1 FROM api.outbox_parked')).rowCount).toBe(0);
    const gate = await sql.query('SELECT status, revision FROM sender.gate_public WHERE schedule_id = $1', [
      uuidOf(answer.body.id),
    ]);
    expect(gate.rows).toEqual([{ status: 'active', revision: 1 }]);
  });

  it('names every faulty member at once', async () => {
    const answer = await create({
      from: { number: 'nobody' },
      content: { text: 'Hello {{name}}' },
      recipients: [{ to: '+4915123456789' }, { to: '12345', parameters: { name: 'B' } }],
      when: { at: '2037-03-29T02:30:00', timeZone: 'Europe/Berln' },
      validity: { for: 'soon' },
      retry: { delays: ['PT2M', 'never'] },
    });
    expect(answer.status).toBe(422);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.body.code).toBe('request_invalid');
    const pointers = answer.body.errors.map((one: { pointer: string }) => one.pointer);
    expect(pointers).toEqual(
      expect.arrayContaining([
        '#/from/number',
        '#/category',
        '#/when/timeZone',
        '#/retry/delays/1',
        '#/recipients/0/parameters/name',
        '#/recipients/1/to',
      ]),
    );
    expect(answer.body.errors.find((one: { pointer: string }) => one.pointer === '#/when/timeZone').hint).toBe('Europe/Berlin?');
    expect(JSON.stringify(answer.body)).not.toContain('12345');
  });

  it('tells unknown members from invalid ones', async () => {
    const answer = await create({
      ...template,
      recipients: freshPeople(1),
      wen: {},
      content: { template: { ...template.content.template, bdy: [] } },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map((one: { pointer: string }) => one.pointer).sort()).toEqual(['#/content/template/bdy', '#/wen']);
  });

  it('refuses a second schedule with the same external id and names the first', async () => {
    const first = await create({ ...template, externalId: 'summer-37', recipients: freshPeople(1) });
    const second = await create({ ...template, externalId: 'summer-37', recipients: freshPeople(1) });
    expect(second.status).toBe(409);
    expect(second.body).toMatchObject({ code: 'external_id_taken', existing: first.body.id });
    const found = await api.request('GET', '/v1/schedules/ext:summer-37', { key });
    expect(found.body.id).toBe(first.body.id);
  });

  it('accepts one of two equal campaigns that come at once, whatever the order of their recipients', async () => {
    const recipients = freshPeople(5);
    const answers = await Promise.all([
      create({ ...template, recipients }),
      create({ ...template, recipients: [...recipients].reverse() }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
    const [accepted, refused] = answers.sort((a, b) => a.status - b.status);
    expect(refused!.body).toMatchObject({ code: 'duplicate_schedule', existing: accepted!.body.id });
    expect((await create({ ...template, recipients, allowDuplicate: true })).status).toBe(201);
    expect((await create({ ...template, recipients, when: { ...template.when, at: '2037-03-30T02:30:00' } })).status).toBe(201);
  });

  it('replays the same request, refuses another with its key, and lets only one of many concurrent ones act', async () => {
    const body = { ...template, recipients: freshPeople(1) };
    const headers = { 'idempotency-key': '"order-77"' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => create(body, headers)));
    expect(new Set(answers.map(({ body: { id } }) => id)).size).toBe(1);
    expect(answers.every(({ status }) => status === 201)).toBe(true);
    expect(answers.filter((one) => one.headers.get('idempotent-replayed') === 'true')).toHaveLength(5);
    const other = await create({ ...body, name: 'other' }, headers);
    expect(other.status).toBe(422);
    expect(other.body.code).toBe('idempotency_key_reused');
  });
});

describe('changing a schedule', () => {
  it('revises with If-Match only, raises the revision, and says how many follow', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(2) });
    const path = `/v1/schedules/${body.id}`;
    const patch = { content: { template: { ...template.content.template, name: 'winter_sale' } } };
    expect((await api.request('PATCH', path, { key, body: patch })).status).toBe(428);
    const stale = await api.request('PATCH', path, { key, body: patch, headers: { 'if-match': '"7"' } });
    expect(stale.status).toBe(412);
    expect(stale.body.currentVersion).toBe(1);
    const revised = await api.request('PATCH', path, { key, body: patch, headers: { 'if-match': '"1"' } });
    expect(revised.status).toBe(200);
    expect(revised.headers.get('etag')).toBe('"2"');
    expect(revised.body).toMatchObject({ version: 2, revision: 2, change: { alreadyAtGate: 0, willUseRevision: 2 } });
    expect(revised.body.content.template.name).toBe('winter_sale');
    const named = await api.request('PATCH', path, { key, body: { labels: { a: 'b' } }, headers: { 'if-match': '"2"' } });
    expect(named.body).toMatchObject({ version: 3, revision: 2, labels: { a: 'b' } });
  });

  it('gives one of two concurrent revisions a 412', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(2) });
    const answers = await Promise.all(
      [3, 7].map((priority) =>
        api.request('PATCH', `/v1/schedules/${body.id}`, { key, body: { priority }, headers: { 'if-match': '"1"' } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
  });

  it('replaces the audience while nothing is claimed; the old messages are shown as cancelled', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(2) });
    const revised = await api.request('PATCH', `/v1/schedules/${body.id}`, {
      key,
      body: { recipients: freshPeople(3) },
      headers: { 'if-match': '"1"' },
    });
    expect(revised.body).toMatchObject({ revision: 2, audience: { accepted: 3 } });
    const dropped = await api.request('GET', `/v1/messages/${body.recipients[0].messageId}`, { key });
    expect(dropped.body).toMatchObject({ status: 'cancelled', reason: 'revised', final: true });
    const kept = await api.request('GET', `/v1/messages/${revised.body.recipients[0].messageId}`, { key });
    expect(kept.body.status).toBe('scheduled');
  });

  it('pauses, resumes and cancels; repeats answer the same receipt', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(4) });
    const path = `/v1/schedules/${body.id}`;
    const paused = await api.request('POST', `${path}/pause`, { key, body: { reason: 'wait for legal' } });
    expect(paused.status).toBe(200);
    expect(paused.body).toMatchObject({
      outcome: 'all_prevented',
      total: 4,
      held: 4,
      inFlight: 0,
      submitted: 0,
      uncertain: 0,
      ended: 0,
    });
    expect((await api.request('POST', `${path}/pause`, { key })).body).toEqual(paused.body);
    expect((await api.request('GET', path, { key })).body.paused).toMatchObject({ reason: 'wait for legal' });
    const resumed = await api.request('POST', `${path}/resume`, { key });
    expect(resumed.body).toMatchObject({ paused: null, version: 3, revision: 1 });
    const cancelled = await api.request('POST', `/v1/runs/${body.next[0].runId}/cancel`, { key });
    expect(cancelled.body).toMatchObject({ scheduleId: body.id, outcome: 'all_prevented', version: 4, total: 4, prevented: 4 });
    expect((await api.request('POST', `${path}/cancel`, { key, body: { reason: 'twice' } })).body).toEqual(cancelled.body);
    const late = await api.request('POST', `${path}/resume`, { key });
    expect(late.status).toBe(409);
    expect(late.body.code).toBe('schedule_ended');
    expect((await api.request('GET', `/v1/runs/${body.next[0].runId}`, { key })).body.status).toBe('cancelled');
    const message = await api.request('GET', `/v1/messages/${body.recipients[0].messageId}`, { key });
    expect(message.body).toMatchObject({ status: 'cancelled', final: true, reachedProvider: 'no' });
  });

  it('keeps a stream that replays to the stored state', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(2) });
    const path = `/v1/schedules/${body.id}`;
    await api.request('POST', `${path}/pause`, { key });
    await api.request('PATCH', path, { key, body: { priority: 1, validity: { for: 'PT2H' } }, headers: { 'if-match': '*' } });
    await api.request('POST', `${path}/resume`, { key });
    await api.request('POST', `${path}/cancel`, { key, body: { reason: 'enough' } });
    const id = uuidOf(body.id);
    const stream = await sql.query(
      'SELECT name, data, (extract(epoch FROM at) * 1000)::float8 AS "atMs", actor AS by FROM api.schedule_event WHERE schedule_id = $1 ORDER BY version',
      [id],
    );
    const { rows } = await sql.query('SELECT state FROM api.schedule WHERE id = $1', [id]);
    expect(replay(stream.rows)).toEqual(rows[0].state);
    expect(stream.rows.map(({ name }) => name)).toEqual(['requested', 'paused', 'revised', 'resumed', 'cancelled']);
  });
});

describe('reading', () => {
  it('finds messages that nobody has released, masks numbers, and shows them with recipients:read', async () => {
    const recipients = freshPeople(3);
    const { body } = await create({ ...template, recipients });
    const id = body.recipients[2].messageId as string;
    const message = await api.request('GET', `/v1/messages/${id.toUpperCase()}`, { key });
    expect(message.body).toMatchObject({
      id,
      runId: body.next[0].runId,
      ref: recipients[2]!.ref,
      to: recipients[2]!.to,
      status: 'scheduled',
    });
    const narrow = await api.request('POST', '/v1/api-keys', { key, body: { name: 'support', scopes: ['messages:read'] } });
    const masked = await api.request('GET', `/v1/messages/${id}`, { key: narrow.body.key });
    expect(masked.body.to).toBe(`${recipients[2]!.to.slice(0, 6)}******${recipients[2]!.to.slice(-2)}`);
    const timeline = await api.request('GET', `/v1/messages/${id}/timeline`, { key });
    expect(timeline.body.data.map((one: { what: string }) => one.what)).toEqual(['schedule_requested', 'time_resolved']);
  });

  it('gives a run whose counts add up, and pages through its messages', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(5) });
    const path = `/v1/runs/${body.next[0].runId}`;
    const run = await api.request('GET', path, { key });
    expect(run.body).toMatchObject({ status: 'scheduled', outcome: null, total: 5, waitingFor: null });
    expect(run.body.counts.scheduled).toBe(5);
    const first = await api.request('GET', `${path}/messages?limit=2`, { key });
    const second = await api.request('GET', `${path}/messages?limit=3&cursor=${first.body.nextCursor}`, { key });
    expect(second.body.nextCursor).toBeNull();
    const ids = [...first.body.data, ...second.body.data].map((one: { id: string }) => one.id);
    expect(ids).toEqual(body.recipients.map((one: { messageId: string }) => one.messageId));
    const other = await api.request('GET', `${path}/messages?status=failed&cursor=${first.body.nextCursor}`, { key });
    expect(other.body.code).toBe('cursor_mismatch');
    expect((await api.request('GET', `${path}/messages?status=failed&status=expired`, { key })).body.data).toEqual([]);
    expect((await api.request('GET', `${path}/messages?status=scheduled`, { key })).body.data).toHaveLength(5);
  });

  it('cancels one message by name, and refuses when it is too late', async () => {
    const { body } = await create({ ...template, recipients: freshPeople(2) });
    const path = `/v1/messages/${body.recipients[0].messageId}`;
    const cancelled = await api.request('POST', `${path}/cancel`, { key });
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({ status: 'cancelled', final: true });
    expect((await api.request('POST', `${path}/cancel`, { key })).status).toBe(200);
    const receipt = await api.request('POST', `/v1/schedules/${body.id}/cancel`, { key });
    expect(receipt.body).toMatchObject({ outcome: 'partly_prevented', total: 2, prevented: 1, ended: 1 });
  });

  it('lists schedules by label and status, newest first, with a cursor', async () => {
    for (const name of ['one', 'two', 'three'])
      await create({ ...template, name, recipients: freshPeople(1), labels: { list: 'yes' } });
    const first = await api.request('GET', '/v1/schedules?label=list:yes&limit=2', { key });
    expect(first.body.data.map((one: { name: string }) => one.name)).toEqual(['three', 'two']);
    const rest = await api.request('GET', `/v1/schedules?label=list:yes&limit=2&cursor=${first.body.nextCursor}`, { key });
    expect(rest.body.data.map((one: { name: string }) => one.name)).toEqual(['one']);
    expect(rest.body.nextCursor).toBeNull();
    expect((await api.request('GET', `/v1/schedules?label=list:no&cursor=${first.body.nextCursor}`, { key })).status).toBe(400);
    expect((await api.request('GET', '/v1/schedules?lable=list:no', { key })).body.code).toBe('unknown_member');
  });

  it('shows a tenant nothing of another', async () => {
    const { body } = await create({ ...template, externalId: 'mine', recipients: freshPeople(1) });
    const other = await createTenantWithNumber(api);
    for (const path of [
      `/v1/schedules/${body.id}`,
      '/v1/schedules/ext:mine',
      `/v1/runs/${body.next[0].runId}`,
      `/v1/messages/${body.recipients[0].messageId}`,
    ]) {
      expect((await api.request('GET', path, { key: other.key })).status).toBe(404);
      expect((await api.request('GET', path, { key })).status).toBe(200);
    }
    expect((await api.request('POST', `/v1/schedules/${body.id}/cancel`, { key: other.key })).status).toBe(404);
    expect((await api.request('GET', '/v1/schedules', { key: other.key })).body.data).toEqual([]);
  });
});

function uuidOf(id: string): string {
  return uuidText(parseId('sch', id)!);
}
