import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { silentLog } from '#runtime/log';
import { openDatabase } from '#runtime/postgres/open-database';
import { waitUntil } from '#runtime/wait-until';
import { createTenantWithNumber, startTestApi, type TestApi } from '../test-api';
import { AudienceStore } from './storing/audience-store';
import { UploadSweeper } from './storing/sweep-uploads';
import { AudienceTables, beginUpload, csvRows, germanMobile, upload, type Uploaded } from './test-uploads';

const MAX_BYTES = 1_048_576;
const MAX_RECIPIENTS = 21_000;
const NOTHING = { uploading: 0, ready: 0, chunks: 0, rejectedPages: 0 };

let api: TestApi;
let tables: AudienceTables;
let key: string;
let tenantId: string;

beforeAll(async () => {
  api = await startTestApi({
    settings: {
      UPLOAD_MAX_BYTES: String(MAX_BYTES),
      UPLOAD_MAX_RECIPIENTS: String(MAX_RECIPIENTS),
      UPLOAD_STALL_MS: '1500',
      UPLOADS_AT_ONCE: '20',
      UPLOADS_AT_ONCE_PER_TENANT: '20',
    },
  });
  tables = await AudienceTables.open(api.database.adminUrl);
  ({ key } = await createTenantWithNumber(api));
  [{ tenantId }] = (await tables.query<{ tenantId: string }>('SELECT id::text AS "tenantId" FROM api.tenant')) as [
    { tenantId: string },
  ];
});

afterAll(async () => {
  await tables?.close();
  await api?.stop();
});

afterEach(async () => {
  await tables.query('DELETE FROM api.audience');
});

const send = (body: Parameters<typeof upload>[1], headers: Record<string, string> = {}, query = ''): Promise<Uploaded> =>
  upload(api, body, { key, query, headers });

const row = (index: number): string => `${germanMobile(index)},r${index},Zoë\n`;
const FILE = Buffer.concat([...csvRows(20_000)]);

describe('an upload that ends too early', () => {
  it('leaves nothing, wherever it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: FILE.length - 1 }), fc.boolean(), async (cut, politely) => {
        const socket = await beginUpload(api, key, FILE.length);
        if (cut > 0) await new Promise<void>((written) => socket.write(FILE.subarray(0, cut), () => written()));
        if (politely) socket.end();
        else socket.destroy();
        await tables.untilCounts(NOTHING);
      }),
      { numRuns: 12 },
    );
    // The twin: the very same bytes up to the last are an audience.
    const socket = await beginUpload(api, key, FILE.length, ['connection: close']);
    socket.write(FILE);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 201 /);
    await tables.untilCounts({ uploading: 0, ready: 1, chunks: 40, rejectedPages: 0 });
  });

  it('while other uploads go on does them no harm', async () => {
    const whole = send(csvRows(20_000, 5_000_000));
    const cut = await beginUpload(api, key, FILE.length);
    cut.write(FILE.subarray(0, 400_000), () => cut.destroy());
    await expect(whole).resolves.toMatchObject({ status: 201, body: { accepted: 20_000 } });
    await tables.untilCounts({ uploading: 0, ready: 1, chunks: 40, rejectedPages: 0 });
  });

  it('or stands still is answered so and given up', async () => {
    const socket = await beginUpload(api, key, FILE.length);
    socket.write(FILE.subarray(0, 300_000));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer.toString()).toContain('upload_stalled');
    await tables.untilCounts(NOTHING);
    socket.destroy();
  });
});

describe('an upload that only trickles', () => {
  it('is given up although something comes now and then', async () => {
    const socket = await beginUpload(api, key, FILE.length);
    const answered = once(socket, 'data') as Promise<[Buffer]>;
    let sent = 0;
    const trickle = setInterval(() => socket.write(FILE.subarray(sent, ++sent)), 100);
    const [answer] = await answered;
    clearInterval(trickle);
    socket.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 408 /);
    expect(sent).toBeGreaterThan(5);
  });
});

describe('compressed uploads', () => {
  const whole = gzipSync(FILE);
  const gzip = { 'content-encoding': 'gzip' };

  it.each([
    ['cut off', whole.subarray(0, whole.length - 1)],
    ['cut in the middle', whole.subarray(0, whole.length >> 1)],
    ['cut in their header', whole.subarray(0, 5)],
    ['damaged', Buffer.concat([whole.subarray(0, -8), Buffer.alloc(8, 0x55)])],
    ['not compressed at all', Buffer.from(`phone\n${row(1)}`)],
  ])('that are %s are refused with the header at fault', async (_, body) => {
    await expect(send(body, gzip)).resolves.toMatchObject({
      status: 422,
      body: { code: 'upload_invalid', errors: [{ header: 'Content-Encoding', code: 'compression_invalid' }] },
    });
    await tables.untilCounts(NOTHING);
  });

  it('are measured as they unfold', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('phone\n'), Buffer.alloc(32 * 1_048_576, `${germanMobile(1)}\n`)]));
    expect(bomb.length).toBeLessThan(MAX_BYTES);
    await expect(send(bomb, gzip)).resolves.toMatchObject({ status: 413, body: { code: 'upload_too_large' } });
    await tables.untilCounts(NOTHING);
    await expect(send(whole, gzip)).resolves.toMatchObject({ status: 201, body: { accepted: 20_000 } });
  });
});

describe('a file that can not be taken', () => {
  it.each([
    ['', '#', 'upload_empty'],
    ['phone,name\n', '#row=2', 'upload_empty'],
    ['\n', '#row=1', 'header_missing'],
    ['name,code\nx,y\n', '#row=1', 'header_number_missing'],
    ['phone,name,to\n', '#cell=1,3', 'header_number_missing'],
    ['phone,first name\n', '#cell=1,2', 'header_name_invalid'],
    ['phone,__proto__\n', '#cell=1,2', 'header_name_invalid'],
    ['phone,a,b,A\n', '#cell=1,4', 'header_name_twice'],
    [`phone,${Array.from({ length: 65 }, (_, i) => `c${i}`).join(',')}\n`, '#row=1', 'too_many_columns'],
    [`phone,ref,a\r${row(1)}\r${row(2)}\r`.replaceAll('\n', ''), '#row=1', 'line_ends_unknown'],
    [`phone,ref,a\n${row(1)}${row(2)}"${row(3)}`, '#row=4', 'quote_not_closed'],
    [`phone,ref,a\n${row(1)}"${'x'.repeat(200_000)}`, '#row=3', 'record_too_long'],
  ])('%# is refused with the place at fault: %.30j', async (csv, pointer, code) => {
    await expect(send(csv)).resolves.toMatchObject({
      status: 422,
      body: { status: 422, code: 'upload_invalid', detail: expect.any(String), errors: [{ pointer, code }] },
    });
    await tables.untilCounts(NOTHING);
  });

  it('because of its encoding is told the row, far behind the beginning too', async () => {
    const latin1 = Buffer.concat([
      ...csvRows(15_000),
      Buffer.from(`${germanMobile(30_000)},x,Zo`),
      Buffer.from([0xeb]),
      Buffer.from(`\n${row(30_001)}`),
    ]);
    await expect(send(latin1)).resolves.toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '#row=15002', code: 'encoding_invalid' }] },
    });
    const utf16 = Buffer.from(`\ufeffphone,ref\n${row(1)}`, 'utf16le');
    const withoutMark = Buffer.from(`phone,ref\n${row(1)}`.replace('ë', 'e'), 'utf16le');
    for (const bytes of [utf16, withoutMark]) {
      await expect(send(bytes)).resolves.toMatchObject({
        status: 422,
        body: { errors: [{ pointer: '#row=1', code: 'encoding_invalid' }] },
      });
    }
    await tables.untilCounts(NOTHING);
  });

  it('with more recipients than allowed is refused, one with just as many is not', async () => {
    await expect(
      send(gzipSync(Buffer.concat([...csvRows(MAX_RECIPIENTS + 1)])), { 'content-encoding': 'gzip' }),
    ).resolves.toMatchObject({
      status: 413,
      body: { code: 'upload_too_large', errors: [{ code: 'upload_too_many_rows' }] },
    });
    await tables.untilCounts(NOTHING);
    await expect(send(csvRows(MAX_RECIPIENTS))).resolves.toMatchObject({ status: 201, body: { accepted: MAX_RECIPIENTS } });
  });

  it.each([
    ['blank', '\n'],
    ['blank, written out', ',\r\n'],
    ['rejected', 'x\n'],
    ['repeated', `${germanMobile(1)}\n`],
  ])('with too many rows that are %s is refused, one with just as many rows as allowed is not', async (_kind, row) => {
    const gzip = { 'content-encoding': 'gzip' };
    const file = (rows: number) => gzipSync(`phone\n${germanMobile(1)}\n${row.repeat(rows - 1)}`);
    await expect(send(file(2 * MAX_RECIPIENTS + 1), gzip)).resolves.toMatchObject({
      status: 413,
      body: {
        code: 'upload_too_large',
        detail: expect.stringContaining('at most 42000 rows'),
        errors: [{ code: 'upload_too_many_rows', pointer: '#row=42002' }],
      },
    });
    await tables.untilCounts(NOTHING);
    await expect(send(file(2 * MAX_RECIPIENTS), gzip)).resolves.toMatchObject({ status: 201, body: { accepted: 1 } });
  });

  it('for its size is refused before a byte of it is read', async () => {
    const socket = await beginUpload(api, key, MAX_BYTES + 1);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer.toString()).toContain('"header":"Content-Length"');
    socket.destroy();
    const unannounced = (function* () {
      yield Buffer.from('phone\n');
      for (let index = 0; index < 100; index++) yield Buffer.alloc(65_520, `${germanMobile(1)}\n`);
    })();
    await expect(send(unannounced)).resolves.toMatchObject({ status: 413, body: { errors: [{ code: 'upload_too_large' }] } });
    await tables.untilCounts(NOTHING);
  });
});

describe('a request that asks for something else', () => {
  it.each([
    [{ 'content-type': 'application/json' }, 'Content-Type'],
    [{ 'content-type': 'text/csv; charset=iso-8859-1' }, 'Content-Type'],
    [{ 'content-encoding': 'br' }, 'Content-Encoding'],
  ])('%j is refused', async (headers, header) => {
    await expect(send('{}', headers)).resolves.toMatchObject({
      status: 415,
      body: { code: 'media_type_unsupported', errors: [{ header }] },
    });
  });

  it.each([
    ['?defaultCountry=XX', 422, 'defaultCountry', 'country_unknown'],
    ['?defaultCountry=Germany', 422, 'defaultCountry', 'format_invalid'],
    ['?defaultCountry=DE&digits=international', 422, 'defaultCountry', 'ambiguous'],
    ['?distinctBy=name', 422, 'distinctBy', 'value_invalid'],
    ['?country=DE', 400, 'country', 'unknown_member'],
  ])('%s is refused', async (query, status, parameter, code) => {
    await expect(send('phone\n+1\n', {}, query)).resolves.toMatchObject({ status, body: { errors: [{ parameter, code }] } });
  });
});

describe('more uploads than a process reads at once', () => {
  it('are asked to come back, and then taken', async () => {
    const busy = await startTestApi({ settings: { UPLOADS_AT_ONCE: '3', UPLOADS_AT_ONCE_PER_TENANT: '2' } });
    const stored = await AudienceTables.open(busy.database.adminUrl);
    const [one, other] = [await createTenantWithNumber(busy), await createTenantWithNumber(busy)];
    const held = await Promise.all([one, one, other].map((tenant) => beginUpload(busy, tenant.key, FILE.length)));
    for (const socket of held) socket.write(FILE.subarray(0, 200_000));
    await stored.untilCounts({ ...NOTHING, uploading: 3 });
    const turnedAway = [await upload(busy, FILE, { key: one.key }), await upload(busy, FILE, { key: other.key })];
    expect(turnedAway).toMatchObject([
      { status: 429, body: { code: 'too_many_uploads' } },
      { status: 503, body: { code: 'unavailable' } },
    ]);
    for (const { headers } of turnedAway) expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    for (const socket of held) socket.destroy();
    await stored.untilCounts(NOTHING);
    const taken = await waitUntil('a place for an upload', async () => {
      const answer = await upload(busy, FILE, { key: one.key });
      return answer.status === 429 ? null : answer;
    });
    expect(taken).toMatchObject({ status: 201, body: { accepted: 20_000 } });
    await stored.close();
    await busy.stop();
  });
});

describe('the sweep', () => {
  it('removes uploads whose process died, and no others', async () => {
    await send(`phone\n${germanMobile(1)}\n`);
    const insert = (touched: string) =>
      tables.query<{ id: string }>(
        `WITH a AS (INSERT INTO api.audience (id, tenant_id, source, status, accepted, rejected, duplicates, chunk_count, columns, created_at, touched_at)
           VALUES (gen_random_uuid(), $1, 'upload', 'uploading', 0, 0, 0, 0, '{}', now(), now() - $2::interval) RETURNING id)
         INSERT INTO api.audience_chunk SELECT id, 0, 1, '\\x0000000000000000', '\\x00' FROM a RETURNING audience_id AS id`,
        [tenantId, touched],
      );
    for (let dead = 0; dead < 3; dead++) await insert('11 minutes');
    await insert('9 minutes');
    const database = await openDatabase({ url: api.database.urlFor('punctual_api'), name: 'sweep' });
    const sweeper = new UploadSweeper(new AudienceStore(database), silentLog);
    expect([await sweeper.sweepOnce(), await sweeper.sweepOnce(), await sweeper.sweepOnce()]).toEqual([2, 1, 0]);
    await database.close();
    await tables.untilCounts({ uploading: 1, ready: 1, chunks: 2, rejectedPages: 0 });
  });
});
