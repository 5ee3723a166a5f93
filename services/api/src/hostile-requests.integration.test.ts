import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { pause } from '#runtime/pause';
import { createTenantWithNumber, startTestApi, type TestApi } from './test-api';

let api: TestApi;
let key: string;
beforeAll(async () => {
  api = await startTestApi();
  ({ key } = await createTenantWithNumber(api));
});
afterAll(async () => {
  await api?.stop();
});

const schedule = {
  from: { number: 'wa-main' },
  category: 'utility',
  content: { text: 'Hello' },
  recipients: [{ to: '+4915123456789' }],
  when: { at: '2037-03-29T12:30:00', timeZone: 'Europe/Berlin' },
};

const NUL = '\u0000';

it.each([
  ['a name', { ...schedule, name: `a${NUL}b` }, '#/name'],
  ['half a character', { ...schedule, name: 'a\ud800b' }, '#/name'],
  ['a text', { ...schedule, content: { text: NUL } }, '#/content/text'],
  ['a label', { ...schedule, labels: { campaign: NUL } }, '#/labels/campaign'],
  ['the number', { ...schedule, from: { number: NUL } }, '#/from/number'],
  ['a ref', { ...schedule, recipients: [{ to: '+4915123456789', ref: NUL }] }, '#/recipients/0/ref'],
])('%s that no text can hold is named', async (_what, body, pointer) => {
  const answer = await api.request('POST', '/v1/schedules', { key, body });
  expect(answer.status).toBe(422);
  expect(answer.body.errors).toMatchObject([{ pointer, code: 'format_invalid' }]);
});

it.each([
  ['/v1/schedules/ext:%00', 422],
  ['/v1/schedules?label=a:%00', 422],
  ['/v1/schedules?dueUntil=0000-01-01T00:00:00Z', 422],
  ['/v1/schedules?dueFrom=2030-01-01T00:00:00%2B23:59', 200],
  ['/v1/schedules/%ff', 404],
  [`/v1/schedules/${'x'.repeat(2_000)}`, 404],
])('GET %s is answered with %d', async (path, status) => {
  const answer = await api.request('GET', path, { key });
  expect(answer.status).toBe(status);
  if (status >= 400) expect(answer.headers.get('content-type')).toContain('application/problem+json');
});

it('a cursor that is made up is no fault of ours', async () => {
  const hash = createHash('sha256').update('[]').digest('hex').slice(0, 16);
  for (const position of ['abc', '0', '-', '9'.repeat(60)]) {
    const cursor = Buffer.from(JSON.stringify([position, hash])).toString('base64url');
    const answer = await api.request('GET', `/v1/schedules?cursor=${cursor}`, { key });
    expect([answer.status, answer.body.code]).toEqual([400, 'cursor_mismatch']);
  }
});

it.each(['a\r\nX-Evil: y', 'tökén', 'with blank', ''])(
  'an access token that no header can carry is refused: %j',
  async (accessToken) => {
    const answer = await api.request('PUT', '/v1/numbers/odd', {
      key,
      body: { kind: 'whatsapp', provider: { name: 'whatsapp_cloud', numberId: '7123456789' }, credentials: { accessToken } },
    });
    expect(answer.status).toBe(422);
    expect(answer.body.errors).toMatchObject([{ pointer: '#/credentials/accessToken' }]);
  },
);

it('first registrations of one number at once are all made, whichever index they meet at', async () => {
  const barrier = new Client({ connectionString: api.database.adminUrl });
  await barrier.connect();
  const refused: unknown[] = [];
  try {
    for (let round = 0; round < 30; round++) {
      // Readers pass and writers queue up, until all of them start their insert in the same moment.
      await barrier.query('BEGIN; LOCK TABLE api.number IN SHARE MODE');
      const puts = Array.from({ length: 8 }, (_, index) =>
        api.request('PUT', `/v1/numbers/fresh-${round}`, {
          key,
          body: {
            kind: 'whatsapp',
            provider: { name: 'whatsapp_cloud', numberId: String(5_000_000_000 + round) },
            ratePerSecond: index + 1,
            credentials: { accessToken: 'token' },
          },
        }),
      );
      await pause(60);
      await barrier.query('COMMIT');
      const answers = await Promise.all(puts);
      refused.push(...answers.filter(({ status }) => status !== 200 && status !== 201).map(({ body }) => body.code));
    }
  } finally {
    await barrier.end();
  }
  expect(refused).toEqual([]);
});

it('changes of one number at once are all made, and so are those of any version of a schedule', async () => {
  const rates = Array.from({ length: 16 }, (_, index) => index + 1);
  const puts = await Promise.all(
    rates.map((ratePerSecond) =>
      api.request('PUT', '/v1/numbers/busy', {
        key,
        body: {
          kind: 'whatsapp',
          provider: { name: 'whatsapp_cloud', numberId: '7987654321' },
          ratePerSecond,
          credentials: { accessToken: 'token' },
        },
      }),
    ),
  );
  expect(puts.map(({ status }) => status).filter((status) => status !== 200 && status !== 201)).toEqual([]);

  const created = await api.request('POST', '/v1/schedules', { key, body: schedule });
  expect([created.status, created.body.errors]).toEqual([201, undefined]);
  const patches = await Promise.all(
    rates.slice(0, 8).map((rate) =>
      api.request('PATCH', `/v1/schedules/${created.body.id}`, {
        key,
        headers: { 'if-match': '*' },
        body: { content: { text: `Hello ${rate}` } },
      }),
    ),
  );
  expect(patches.map(({ status }) => status)).toEqual(patches.map(() => 200));
});

it('a change that always comes second is made all the same, and given up only when that never ends', async () => {
  const created = await api.request('POST', '/v1/schedules', { key, body: schedule });
  const database = new Client({ connectionString: api.database.adminUrl });
  await database.connect();
  // What a competitor does between reading and writing, as often as it is wanted.
  const loseTo = (competitors: number) =>
    database.query(`
      CREATE SEQUENCE api.competitor;
      CREATE FUNCTION api.come_second() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN
        IF nextval('api.competitor') <= ${competitors} THEN RAISE EXCEPTION 'a competitor' USING ERRCODE = 'PA412'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER come_second BEFORE UPDATE ON api.schedule FOR EACH ROW EXECUTE FUNCTION api.come_second();`);
  const pauseIt = () => api.request('POST', `/v1/schedules/${created.body.id}/pause`, { key });
  try {
    await loseTo(100);
    expect(await pauseIt()).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    await database.query('DROP FUNCTION api.come_second CASCADE; DROP SEQUENCE api.competitor');
    await loseTo(10);
    expect(await pauseIt()).toMatchObject({ status: 200 });
  } finally {
    await database.query('DROP FUNCTION IF EXISTS api.come_second CASCADE; DROP SEQUENCE IF EXISTS api.competitor');
    await database.end();
  }
});
