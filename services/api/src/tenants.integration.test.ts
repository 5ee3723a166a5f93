import { Client } from 'pg';
import { parseId, uuidText } from '#contracts/ids';
import { unseal } from '#runtime/sealed-secret';
import { createTenantWithNumber, startTestApi, type TestApi } from './test-api';

let api: TestApi;
let sql: Client;
beforeAll(async () => {
  api = await startTestApi();
  sql = new Client({ connectionString: api.database.adminUrl });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  await api?.stop();
});

describe('the operator', () => {
  it('makes tenants and their first keys, with the operator key only', async () => {
    const body = { name: 'Shop', mode: 'live' };
    expect((await api.request('POST', '/v1/admin/tenants', { key: 'guess', body })).status).toBe(401);
    const tenant = await api.request('POST', '/v1/admin/tenants', { key: api.operatorKey, body });
    expect(tenant.status).toBe(201);
    expect(tenant.body).toMatchObject(body);
    const path = `/v1/admin/tenants/${tenant.body.id}`;
    expect((await api.request('GET', path, { key: api.operatorKey })).body).toEqual(tenant.body);
    const made = await api.request('POST', `${path}/api-keys`, {
      key: api.operatorKey,
      body: { name: 'first', scopes: ['numbers:read'] },
    });
    expect(made.body).toMatchObject({ mode: 'live', scopes: ['numbers:read'] });
    expect(made.body.key).toMatch(/^punctual_live_/);
    expect((await api.request('GET', '/v1/numbers/none', { key: made.body.key })).body.code).toBe('number_not_found');
    const stored = await sql.query('SELECT * FROM api.api_key');
    expect(JSON.stringify(stored.rows)).not.toContain(made.body.key);
    const unknown = path.slice(0, -1) + (path.endsWith('0') ? '8' : '0');
    expect((await api.request('GET', unknown, { key: api.operatorKey })).body.code).toBe('tenant_not_found');
  });

  it('gets a key a second time without its secret', async () => {
    const tenant = await api.request('POST', '/v1/admin/tenants', { key: api.operatorKey, body: { name: 'Shop', mode: 'test' } });
    const again = () =>
      api.request('POST', `/v1/admin/tenants/${tenant.body.id}/api-keys`, {
        key: api.operatorKey,
        body: { name: 'first', scopes: ['keys:write'] },
        headers: { 'idempotency-key': 'key-1' },
      });
    const first = await again();
    const second = await again();
    const { key, ...rest } = first.body;
    expect(key).toBeDefined();
    expect(second.body).toEqual(rest);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
  });
});

describe('keys', () => {
  it('do what their scopes say and nothing else', async () => {
    const { key } = await createTenantWithNumber(api, { scopes: ['numbers:read', 'keys:write'] });
    expect((await api.request('GET', '/v1/numbers/wa-main', { key })).status).toBe(200);
    const refused = await api.request('GET', '/v1/schedules', { key });
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({ code: 'scope_missing', scope: 'schedules:read' });
    const wider = await api.request('POST', '/v1/api-keys', {
      key,
      body: { name: 'more', scopes: ['numbers:read', 'schedules:write'] },
    });
    expect(wider.status).toBe(422);
    expect(wider.body.errors).toMatchObject([{ pointer: '#/scopes/1', code: 'scope_missing' }]);
    expect((await api.request('POST', '/v1/admin/tenants', { key, body: { name: 'x', mode: 'test' } })).status).toBe(401);
  });

  it('that were revoked, mistyped or put into the URL open nothing', async () => {
    const { key } = await createTenantWithNumber(api);
    const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    for (const wrong of [typo, 'x', '']) {
      const answer = await api.request('GET', '/v1/schedules', { key: wrong || undefined });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    const inUrl = await api.request('GET', `/v1/schedules?access_token=${key}`, { key });
    expect(inUrl.status).toBe(400);
    expect(inUrl.body.code).toBe('key_in_query');
    expect(JSON.stringify(inUrl.body)).not.toContain(key);
    await sql.query('UPDATE api.api_key SET revoked_at = now()');
    expect((await api.request('GET', '/v1/schedules', { key })).status).toBe(401);
  });
});

describe('a number', () => {
  it('keeps its secrets sealed, bound to itself, and shows a fingerprint', async () => {
    const { key, numberId, providerNumberId } = await createTenantWithNumber(api);
    const shown = await api.request('GET', '/v1/numbers/wa-main', { key });
    expect(shown.body).toMatchObject({
      id: numberId,
      name: 'wa-main',
      mode: 'test',
      provider: { name: 'whatsapp_cloud', numberId: providerNumberId },
      ratePerSecond: 80,
      webhook: { path: `/webhooks/whatsapp/${numberId}`, configured: true },
      hold: null,
      version: 1,
    });
    expect(JSON.stringify(shown.body)).not.toMatch(/token-1|secret-1|verify-1/);
    const { rows } = await sql.query('SELECT * FROM api.number_public WHERE number_id = $1', [uuidOf(numberId)]);
    expect(rows[0].provider_identity).toBe(`whatsapp_cloud:${providerNumberId}`);
    expect((rows[0].credentials as Buffer).includes('token-1')).toBe(false);
    expect(JSON.parse(unseal(api.credentialsKey, rows[0].credentials, numberId).toString())).toEqual({ accessToken: 'token-1' });
    expect(unseal(api.credentialsKey, rows[0].webhook_secret, numberId).toString()).toBe('secret-1');
    expect(unseal(api.credentialsKey, rows[0].webhook_verify_token, numberId).toString()).toBe('verify-1');
    expect(() => unseal(api.credentialsKey, rows[0].credentials, 'num_other')).toThrow();
  });

  it('belongs to one tenant of the installation', async () => {
    const first = await createTenantWithNumber(api);
    const second = await createTenantWithNumber(api);
    const taken = await api.request('PUT', '/v1/numbers/mine', {
      key: second.key,
      body: {
        kind: 'whatsapp',
        provider: { name: 'whatsapp_cloud', numberId: first.providerNumberId },
        credentials: { accessToken: 'a' },
      },
    });
    expect(taken.status).toBe(409);
    expect(taken.body).toMatchObject({ code: 'number_taken', errors: [{ pointer: '#/provider/numberId' }] });
    expect((await api.request('GET', '/v1/numbers/mine', { key: second.key })).status).toBe(404);
  });

  it('needs credentials the first time, keeps them when none are given, and gets a hold of its account lifted by new ones', async () => {
    const { key, numberId, providerNumberId } = await createTenantWithNumber(api);
    const put = (more: object, name = 'wa-main') =>
      api.request('PUT', `/v1/numbers/${name}`, {
        key,
        body: { kind: 'whatsapp', provider: { name: 'whatsapp_cloud', numberId: providerNumberId }, ...more },
      });
    expect((await put({}, 'new')).body.errors).toMatchObject([{ pointer: '#/credentials', code: 'required' }]);
    await sql.query(`INSERT INTO sender.number_state (number_id, hold_reason, hold_since) VALUES ($1, 'account', now())`, [
      uuidOf(numberId),
    ]);
    const before = await api.request('GET', '/v1/numbers/wa-main', { key });
    expect(before.body.hold).toMatchObject({ reason: 'account' });
    const slower = await put({ ratePerSecond: 10 });
    expect(slower.status).toBe(200);
    expect(slower.body).toMatchObject({
      ratePerSecond: 10,
      version: 2,
      hold: { reason: 'account' },
      credentials: before.body.credentials,
    });
    const renewed = await put({ ratePerSecond: 10, credentials: { accessToken: 'token-2' } });
    expect(renewed.body).toMatchObject({ version: 3, hold: null, webhook: { configured: true } });
    expect(renewed.body.credentials.fingerprint).not.toBe(before.body.credentials.fingerprint);
  });

  it('defaults to 50 a second', async () => {
    const { key } = await createTenantWithNumber(api);
    const answer = await api.request('PUT', '/v1/numbers/second', {
      key,
      body: { kind: 'whatsapp', provider: { name: 'whatsapp_cloud', numberId: '99887766' }, credentials: { accessToken: 'a' } },
    });
    expect(answer.status).toBe(201);
    expect(answer.body.ratePerSecond).toBe(50);
  });
});

describe('the HTTP surface', () => {
  const send = (body: Buffer | string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    api.request('POST', '/v1/admin/tenants', { key: api.operatorKey, body: Buffer.from(body), headers });

  it('tells bodies that can not be read from those that are too large or of another kind', async () => {
    expect((await send('{"name":')).body).toMatchObject({ status: 400, code: 'body_unparseable' });
    expect((await send('['.repeat(40) + ']'.repeat(40))).body).toMatchObject({ code: 'body_unparseable' });
    expect((await send('')).body).toMatchObject({ code: 'body_unparseable' });
    expect((await send('<xml/>', { 'content-type': 'text/xml' })).body).toMatchObject({
      status: 415,
      code: 'media_type_unsupported',
    });
    const large = await send(`{"name":"${'x'.repeat(9 * 1024 * 1024)}"}`);
    expect(large.body).toMatchObject({ status: 413, code: 'body_too_large' });
    expect((await send('{"name":"x","mode":"test"}')).status).toBe(201);
  });

  it('answers problems everywhere, with a type that says what it means', async () => {
    const lost = await api.request('GET', '/v2/nothing', { key: api.operatorKey });
    expect(lost.status).toBe(404);
    expect(lost.headers.get('content-type')).toContain('application/problem+json');
    expect(lost.body).toMatchObject({ code: 'not_found', instance: '/v2/nothing' });
    const meaning = await fetch(lost.body.type as string);
    expect(await meaning.json()).toMatchObject({ code: 'not_found', status: 404 });
    expect((await fetch(`${api.origin}/errors/nonsense`)).status).toBe(404);
  });

  it('keeps the correlation id, or makes one', async () => {
    const kept = await api.request('GET', '/v2/nothing', { headers: { 'x-correlation-id': 'order-77' } });
    expect(kept.headers.get('x-correlation-id')).toBe('order-77');
    const made = await api.request('GET', '/v2/nothing', { headers: { 'x-correlation-id': 'spaces are not' } });
    expect(made.headers.get('x-correlation-id')).toMatch(/^cor_/);
  });

  it('says that it is ready, and shows metrics', async () => {
    expect((await fetch(`${api.origin}/health/ready`)).status).toBe(200);
    expect((await fetch(`${api.origin}/health/live`)).status).toBe(200);
  });

  it('documents every endpoint from the schemas that validate', async () => {
    const page = await fetch(`${api.origin}/docs`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('docs/swagger-ui-bundle.js');
    expect((await fetch(`${api.origin}/docs/swagger-ui-bundle.js`)).status).toBe(200);
    const { body } = await api.request('GET', '/docs-json');
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining([
        '/v1/schedules',
        '/v1/schedules/{id}/cancel',
        '/v1/runs/{id}/messages',
        '/v1/messages/{id}/timeline',
        '/v1/numbers/{number}',
      ]),
    );
    const create = body.paths['/v1/schedules'].post;
    expect(create.requestBody.content['application/json'].schema.properties.priority).toMatchObject({ minimum: 1, maximum: 9 });
    expect(create.requestBody.content['application/json'].schema.properties.allowDuplicate.description).toContain(
      'one recipient is never refused as a duplicate',
    );
    expect(create.responses['409'].description).toContain('duplicate_schedule');
    expect(body.paths['/v1/schedules/{id}'].patch.parameters).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: 'If-Match', required: true })]),
    );
    const ids = Object.values(body.paths as Record<string, Record<string, { operationId: string }>>).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });
});

function uuidOf(number: string): string {
  return uuidText(parseId('num', number)!);
}
