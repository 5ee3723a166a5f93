import { randomBytes } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { request } from 'undici';
import { newUuid, uuidText } from '#contracts/ids';
import { OwnedFolder } from '#local-stack/owned-folder';
import type { Database } from '#runtime/postgres/database';
import { openDatabase } from '#runtime/postgres/open-database';
import { AudienceStore } from '../services/api/src/audience/storing/audience-store';
import { RecipientChunks, RecipientHasher, type ValidRecipient } from '../services/api/src/audience/chunks/recipient-chunks';
import { StoreChunks } from '../services/api/src/audience/storing/store-chunks';
import { createTestDatabase, serverAddress, uniquePrefix, type TestDatabase } from '../test-support/isolation';
import { ServiceProcess } from '../tools/local-platform/src/service-process';
import { makeRecipients, writeRecipients } from './support/make-recipients';
import { printTable } from './support/print-table';
import { ownCpuSeconds, usageOf } from './support/process-usage';
import { withServers } from './support/with-servers';

interface Figure {
  what: string;
  recipients: number;
  seconds: number;
  cpuSeconds: number | null;
  peakMebibytes: number | null;
}

const COLUMNS = ['firstName', 'discount', 'code'];

/**
 * What an upload costs, through HTTP into PostgreSQL, and what it costs without reading and validating, each beside the bare
 * loop that bounds it. PostgreSQL, the api and the sending client share the machine.
 */
export async function run({ smoke }: { smoke: boolean }): Promise<void> {
  const count = smoke ? 20_000 : 1_000_000;
  await withServers(async (folder) => {
    const database = await createTestDatabase();
    try {
      const figures = [
        bareParse(smoke ? 2_000 : 100_000),
        await upload(folder, database, count),
        ...(await withoutReading(database, smoke ? 20_000 : 1_000_000)),
      ];
      report(figures);
    } finally {
      await database.drop();
    }
  });
}

/** libphonenumber alone, as one thread can ask it: is this a number, and of which kind. */
function bareParse(count: number): Figure {
  const numbers = [...makeRecipients(count)].map(({ phone }) => phone);
  return measured('bare: libphonenumber on one thread', count, () => {
    for (const number of numbers) {
      const parsed = parsePhoneNumberFromString(number, { extract: false });
      if (parsed?.isValid()) parsed.getType();
    }
  });
}

async function upload(folder: string, database: TestDatabase, count: number): Promise<Figure> {
  const file = join(folder, 'recipients.csv');
  await writeRecipients(file, count);
  const operatorKey = randomBytes(16).toString('hex');
  const owned = await OwnedFolder.claim(join(folder, 'api'));
  const api = await ServiceProcess.create(owned, 'api', 'api', {
    KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
    DATABASE_URL: database.urlFor('punctual_api'),
    TOPIC_PREFIX: uniquePrefix(),
    ID_KEY: randomBytes(32).toString('base64'),
    CREDENTIALS_KEY: randomBytes(32).toString('base64'),
    OPERATOR_KEY: operatorKey,
    LOG_LEVEL: 'warn',
  });
  api.start();
  try {
    await api.untilReady();
    const key = await createKey(api.url, operatorKey);
    // Threads are started and code is compiled by the first upload that a process sees.
    await send(api.url, key, file, 2 * 1_048_576);
    const before = usageOf(api.pid!);
    const start = performance.now();
    const answer = await send(api.url, key, file);
    const seconds = (performance.now() - start) / 1_000;
    const after = usageOf(api.pid!);
    if (answer.accepted + answer.duplicates + answer.rejected !== count)
      throw new Error(`of ${count} rows: ${JSON.stringify(answer)}`);
    return {
      what: 'upload: CSV through HTTP until durable',
      recipients: count,
      seconds,
      cpuSeconds: before && after && after.cpuSeconds - before.cpuSeconds,
      peakMebibytes: after?.peakMebibytes ?? null,
    };
  } finally {
    await api.stop();
    owned.release();
  }
}

async function createKey(url: string, operatorKey: string): Promise<string> {
  const post = async <T>(path: string, body: object): Promise<T> => {
    const headers = { authorization: `Bearer ${operatorKey}`, 'content-type': 'application/json' };
    return (await (await request(url + path, { method: 'POST', headers, body: JSON.stringify(body) })).body.json()) as T;
  };
  const { id } = await post<{ id: string }>('/v1/admin/tenants', { name: 'Bench', mode: 'test' });
  const scopes = ['audiences:write', 'audiences:read'];
  return (await post<{ key: string }>(`/v1/admin/tenants/${id}/api-keys`, { name: 'bench', scopes })).key;
}

interface Uploaded {
  accepted: number;
  duplicates: number;
  rejected: number;
}

async function send(url: string, key: string, file: string, atMost = Infinity): Promise<Uploaded> {
  const length = Math.min(atMost, statSync(file).size);
  const { statusCode, body } = await request(`${url}/v1/audiences?name=bench`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'text/csv', 'content-length': String(length) },
    body: createReadStream(file, { end: length - 1, highWaterMark: 256 * 1_024 }),
    headersTimeout: 600_000,
    bodyTimeout: 600_000,
  });
  const answer = (await body.json()) as Uploaded;
  if (statusCode !== 201) throw new Error(`the upload was answered ${statusCode}: ${JSON.stringify(answer)}`);
  return answer;
}

/** Recipients that are valid already: hashed, sealed into chunks and stored; then the same bytes once more, stored only. */
async function withoutReading(database: TestDatabase, count: number): Promise<Figure[]> {
  const recipients = [...makeRecipients(count)].map(({ phone, ref, firstName, discount, code }) => ({
    to: `+${phone.replace(/\D/g, '')}`,
    ref,
    timeZone: null,
    values: [firstName, discount, code],
  }));
  const api = await openDatabase({ url: database.urlFor('punctual_api'), name: 'ingest-bench' });
  const admin = await openDatabase({ url: database.adminUrl, name: 'ingest-bench' });
  try {
    const tenantId = uuidText(newUuid(Date.now()));
    await admin.pool.query(`INSERT INTO api.tenant VALUES ($1, 'Bench', 'test', now())`, [tenantId]);
    const id = uuidText(newUuid(Date.now()));
    const sealed = await measuredAsync('sealed: valid recipients, hashed and stored', count, () =>
      sealAll(api, tenantId, id, recipients),
    );
    const { rows } = await admin.pool.query<{ count: string }>(
      'SELECT sum(count) FROM api.audience_chunk WHERE audience_id = $1',
      [id],
    );
    if (Number(Object.values(rows[0]!)[0]) !== count) throw new Error('not all recipients were stored');
    const bodies = await admin.pool.query<{ size: number }>(
      'SELECT octet_length(body) AS size FROM api.audience_chunk WHERE audience_id = $1',
      [id],
    );
    await admin.pool.query('CREATE TABLE bench_chunk (chunk int PRIMARY KEY, hashes bytea, body bytea)');
    await admin.pool.query('ALTER TABLE bench_chunk ALTER hashes SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL');
    const bare = await measuredAsync('bare: insert of as many bytes', count, () =>
      insertAll(
        admin,
        bodies.rows.map(({ size }) => size),
      ),
    );
    return [sealed, bare];
  } finally {
    await Promise.all([api.close(), admin.close()]);
  }
}

async function sealAll(database: Database, tenantId: string, id: string, recipients: readonly ValidRecipient[]): Promise<void> {
  const store = new AudienceStore(database);
  const hasher = new RecipientHasher(randomBytes(32));
  const filling = new RecipientChunks(COLUMNS);
  const chunks = new StoreChunks(id, store);
  const hash = new Uint8Array(8);
  await store.begin(id, tenantId, null, COLUMNS, new Date());
  for (const recipient of recipients) {
    hasher.hash(recipient.to, hash);
    const filled = filling.add(recipient, hash);
    if (filled !== null) await chunks.add(filled);
  }
  const { last, chunkCount, setHash } = filling.finish();
  if (last !== null) await chunks.add(last);
  await chunks.finish();
  const totals = { accepted: recipients.length, rejected: 0, duplicates: 0, chunkCount, setHash };
  await store.seal(id, tenantId, { ...totals, missing: {}, rejectedSample: [], warnings: [], sample: [] });
}

async function insertAll(database: Database, sizes: readonly number[]): Promise<void> {
  for (let at = 0; at < sizes.length; at += 24) {
    const part = sizes.slice(at, at + 24);
    const values = part.flatMap((size, index) => [at + index, randomBytes(4_000), randomBytes(size)]);
    const places = part.map((_, index) => `($${index * 3 + 1}, $${index * 3 + 2}, $${index * 3 + 3})`);
    await database.pool.query(`INSERT INTO bench_chunk VALUES ${places.join(', ')}`, values);
  }
}

function measured(what: string, recipients: number, work: () => void): Figure {
  const cpu = ownCpuSeconds();
  const start = performance.now();
  work();
  return {
    what,
    recipients,
    seconds: (performance.now() - start) / 1_000,
    cpuSeconds: ownCpuSeconds() - cpu,
    peakMebibytes: null,
  };
}

async function measuredAsync(what: string, recipients: number, work: () => Promise<void>): Promise<Figure> {
  const cpu = ownCpuSeconds();
  const start = performance.now();
  await work();
  return {
    what,
    recipients,
    seconds: (performance.now() - start) / 1_000,
    cpuSeconds: ownCpuSeconds() - cpu,
    peakMebibytes: null,
  };
}

function report(figures: readonly Figure[]): void {
  const [parse, uploaded, sealed, bare] = figures as [Figure, Figure, Figure, Figure];
  const rate = ({ recipients, seconds }: Figure): number => recipients / seconds;
  printTable(
    'Audience ingestion',
    ['', 'recipients', 'recipients/s', 'CPU µs each (this process)', 'peak MiB'],
    figures.map((figure) => [
      figure.what,
      figure.recipients,
      rate(figure),
      figure.cpuSeconds === null ? '' : (figure.cpuSeconds / figure.recipients) * 1e6,
      figure.peakMebibytes ?? '',
    ]),
  );
  printTable(
    'Ratios',
    ['', 'ratio'],
    [
      ['upload to bare libphonenumber', rate(uploaded) / rate(parse)],
      ['upload to bare insert', rate(uploaded) / rate(bare)],
      ['sealed to bare insert', rate(sealed) / rate(bare)],
    ],
  );
}

if (require.main === module) {
  run({ smoke: process.argv.includes('--smoke') }).catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  });
}
