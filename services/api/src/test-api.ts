import { randomBytes } from 'node:crypto';
import { openLog, silentLog } from '#runtime/log';
import type { Clock } from '#runtime/clock';
import { systemClock } from '#runtime/clock';
import {
  createTestDatabase,
  createTopics,
  serverAddress,
  uniquePrefix,
  type TestDatabase,
} from '../../../test-support/isolation';
import { composeApi } from './app.module';
import { readConfig } from './config';
import { SCOPES, type Scope } from './keys/api-key';

export interface Answered {
  status: number;
  headers: Headers;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a test looks into whatever comes
  body: any;
}

export interface RequestOptions {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestApi {
  origin: string;
  prefix: string;
  database: TestDatabase;
  operatorKey: string;
  credentialsKey: Buffer;
  request(method: string, path: string, options?: RequestOptions): Promise<Answered>;
  stop(): Promise<void>;
}

/** The whole service on real servers, with a database and topics of its own, listening on a free port. */
export async function startTestApi(options: { clock?: Clock; settings?: Record<string, string> } = {}): Promise<TestApi> {
  const database = await createTestDatabase();
  const prefix = uniquePrefix();
  const topics = await createTopics(prefix);
  const operatorKey = randomBytes(16).toString('hex');
  const credentialsKey = randomBytes(32);
  const config = readConfig({
    KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
    DATABASE_URL: database.urlFor('punctual_api'),
    TOPIC_PREFIX: prefix,
    PORT: '0',
    ID_KEY: randomBytes(32).toString('base64'),
    CREDENTIALS_KEY: credentialsKey.toString('base64'),
    OPERATOR_KEY: operatorKey,
    ...options.settings,
  });
  const log = process.env.TEST_LOG ? openLog({ service: 'api' }) : silentLog;
  const { lifecycle, origin } = await composeApi(config, log, options.clock ?? systemClock);
  await lifecycle.start();
  const request = (method: string, path: string, { key, body, headers = {} }: RequestOptions = {}) =>
    send(
      origin() + path,
      method,
      {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body === undefined || Buffer.isBuffer(body) ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body,
    );
  return {
    origin: origin(),
    prefix,
    database,
    operatorKey,
    credentialsKey,
    request,
    stop: async () => {
      await lifecycle.stop();
      await topics.drop();
      await database.drop();
    },
  };
}

async function send(url: string, method: string, headers: Record<string, string>, body: unknown): Promise<Answered> {
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? Uint8Array.from(Buffer.from(body)) : JSON.stringify(body);
  const response = await fetch(url, { method, headers, body: payload });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

/** A tenant with a key and the number `wa-main`. */
export async function createTenantWithNumber(
  api: TestApi,
  { scopes = SCOPES, ratePerSecond = 80 }: { scopes?: readonly Scope[]; ratePerSecond?: number } = {},
): Promise<{ tenantId: string; key: string; numberId: string; providerNumberId: string }> {
  const tenant = await api.request('POST', '/v1/admin/tenants', { key: api.operatorKey, body: { name: 'Shop', mode: 'test' } });
  const made = await api.request('POST', `/v1/admin/tenants/${tenant.body.id}/api-keys`, {
    key: api.operatorKey,
    body: { name: 'first', scopes: SCOPES },
  });
  const providerNumberId = String(10_000_000 + randomBytes(3).readUIntBE(0, 3));
  const number = await api.request('PUT', '/v1/numbers/wa-main', {
    key: made.body.key,
    body: {
      kind: 'whatsapp',
      provider: { name: 'whatsapp_cloud', numberId: providerNumberId },
      ratePerSecond,
      credentials: { accessToken: 'token-1' },
      webhook: { appSecret: 'secret-1', verifyToken: 'verify-1' },
    },
  });
  let key = made.body.key as string;
  if (scopes !== SCOPES) {
    const narrow = await api.request('POST', '/v1/api-keys', { key, body: { name: 'narrow', scopes } });
    key = narrow.body.key;
  }
  return { tenantId: tenant.body.id, key, numberId: number.body.id, providerNumberId };
}
