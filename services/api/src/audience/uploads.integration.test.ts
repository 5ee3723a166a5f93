import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { openChunk } from '#contracts/audience-chunk';
import { parseId, recipientHash, uuidText } from '#contracts/ids';
import { createTenantWithNumber, startTestApi, type TestApi } from '../test-api';
import { AudienceTables, csvRows, germanMobile, upload, type Uploaded } from './test-uploads';

const EXAMPLE = readFileSync(join(__dirname, '../../../../examples/summer-sale/recipients.csv'));
const idKey = randomBytes(32);

let api: TestApi;
let tables: AudienceTables;
let key: string;

beforeAll(async () => {
  api = await startTestApi({
    settings: { ID_KEY: idKey.toString('base64'), UPLOADS_AT_ONCE: '8', UPLOADS_AT_ONCE_PER_TENANT: '8' },
  });
  tables = await AudienceTables.open(api.database.adminUrl);
  ({ key } = await createTenantWithNumber(api));
});

afterAll(async () => {
  await tables?.close();
  await api?.stop();
});

const send = (body: Parameters<typeof upload>[1], query = '', headers: Record<string, string> = {}): Promise<Uploaded> =>
  upload(api, body, { key, query, headers });
const uuidOf = (id: string): string => uuidText(parseId('aud', id)!);

describe('an uploaded file', () => {
  let uploaded: Uploaded;

  beforeAll(async () => {
    uploaded = await send(EXAMPLE, '?name=Summer%20sale');
  });

  it('is answered with what was taken and what was not, row by row as a spreadsheet counts', async () => {
    expect(uploaded).toMatchObject({
      status: 201,
      body: { name: 'Summer sale', status: 'ready', accepted: 1_893, duplicates: 95, rejected: 12 },
    });
    expect(uploaded.headers.location).toBe(`/v1/audiences/${uploaded.body.id}`);
    const lines = EXAMPLE.toString().split('\n');
    for (const { row, value, code, reason } of uploaded.body.rejectedSample) {
      expect(code).toMatch(/^[a-z_]+$/);
      expect(reason).toMatch(/\.$/);
      const given = lines[row - 1]!.split(',')[0]!;
      expect(value.replace(/\*/g, '')).not.toBe('');
      expect(given.slice(0, 4)).toBe(value.slice(0, 4));
    }
    expect(uploaded.body.parameters).toEqual(
      ['firstName', 'discount', 'code'].map((name) => ({ name, missing: 0, firstMissingRow: null })),
    );
    await expect(api.request('GET', uploaded.headers.location as string, { key })).resolves.toMatchObject({
      status: 200,
      body: uploaded.body,
    });
  });

  it('lies in chunks of 500 in the order of the file, with the hashes that message ids are derived from', async () => {
    const chunks = await tables.chunksOf(uuidOf(uploaded.body.id));
    expect(chunks.map(({ chunk, count }) => [chunk, count])).toEqual([
      [0, 500],
      [1, 500],
      [2, 500],
      [3, 393],
    ]);
    const recipients = chunks.flatMap(({ body }) => openChunk(body));
    expect(recipients[0]).toEqual({
      to: '+18195550100',
      ref: 'customer-10001',
      timeZone: null,
      parameters: { firstName: 'Ελένη', discount: '20%', code: 'SUNE2586' },
    });
    const hashes = Buffer.concat(chunks.map((chunk) => chunk.hashes));
    expect(hashes).toEqual(Buffer.concat(recipients.map(({ to }) => recipientHash(idKey, to))));
    expect(new Set(recipients.map(({ to }) => to)).size).toBe(1_893);
  });

  it('gives the same audience compressed, in two pieces a byte apart, or with other line ends and a byte order mark', async () => {
    const variants: Uploaded[] = [
      await send(gzipSync(EXAMPLE), '', { 'content-encoding': 'gzip' }),
      await send([EXAMPLE.subarray(0, 70_001), EXAMPLE.subarray(70_001, 70_002), EXAMPLE.subarray(70_002)]),
      await send(`\ufeff${EXAMPLE.toString().replaceAll('\n', '\r\n')}`),
      await send(EXAMPLE.toString().replace(/\n/g, (feed, at: number) => (at % 3 === 0 ? '\r\n' : feed))),
    ];
    const { set_hash: hash } = (
      await tables.query<{ set_hash: Buffer }>('SELECT set_hash FROM api.audience WHERE id = $1', [uuidOf(uploaded.body.id)])
    )[0]!;
    for (const { status, body } of variants) {
      expect({ status, accepted: body.accepted, duplicates: body.duplicates, rejected: body.rejected }).toEqual({
        status: 201,
        accepted: 1_893,
        duplicates: 95,
        rejected: 12,
      });
      await expect(tables.query('SELECT set_hash FROM api.audience WHERE id = $1', [uuidOf(body.id)])).resolves.toEqual([
        { set_hash: hash },
      ]);
    }
  });

  it('shows its rejected rows in pages and as a file', async () => {
    const path = `/v1/audiences/${uploaded.body.id}/rejected`;
    const first = await api.request('GET', `${path}?limit=5`, { key });
    const second = await api.request('GET', `${path}?limit=10&cursor=${first.body.nextCursor}`, { key });
    expect([first.body.data.length, second.body.data.length, second.body.nextCursor]).toEqual([5, 7, null]);
    expect([...first.body.data, ...second.body.data]).toEqual(uploaded.body.rejectedSample);

    const file = await fetch(api.origin + path, { headers: { authorization: `Bearer ${key}`, accept: 'text/csv' } });
    expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const lines = (await file.text()).trimEnd().split('\r\n');
    expect(lines[0]).toBe('row,value,code,reason');
    expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(
      uploaded.body.rejectedSample.map(({ row }: { row: number }) => `${row}`),
    );
  });

  it('is nobody else’s: another tenant gets the 404 of an id that never was', async () => {
    const other = await createTenantWithNumber(api);
    for (const path of ['', '/rejected']) {
      const answers = [
        await api.request('GET', `/v1/audiences/${uploaded.body.id}${path}`, { key: other.key }),
        await api.request('GET', `/v1/audiences/aud_00000000000000000000000000${path}`, { key: other.key }),
      ];
      expect(answers.map(({ status, body }) => [status, body.code])).toEqual(Array(2).fill([404, 'audience_not_found']));
    }
    const narrow = await createTenantWithNumber(api, { scopes: ['audiences:read'] });
    await expect(upload(api, EXAMPLE, { key: narrow.key })).resolves.toMatchObject({
      status: 403,
      body: { code: 'scope_missing' },
    });
  });
});

describe('rows', () => {
  it('can hold quoted line ends, delimiters and quotes, and be told apart by ref', async () => {
    const csv = [
      '"phone";"ref";"greeting";timeZone',
      `${germanMobile(1)};anna;"Hi ""A"";\nsecond line";Europe/Berlin`,
      `${germanMobile(1)};ben;plain;`,
      '',
      `${germanMobile(1)};anna;again;`,
      `${germanMobile(2)};;no ref;`,
      `${germanMobile(3)};carl;x;Mars/Base`,
      `${germanMobile(4)};dora`,
    ].join('\n');
    const { status, body } = await send(csv, '?distinctBy=ref');
    expect({ status, accepted: body.accepted, duplicates: body.duplicates }).toEqual({ status: 201, accepted: 2, duplicates: 1 });
    expect(body.rejectedSample.map(({ row, code }: { row: number; code: string }) => [row, code])).toEqual([
      [6, 'ref_missing'],
      [7, 'time_zone_unknown'],
      [8, 'columns_mismatch'],
    ]);
    const [chunk] = await tables.chunksOf(uuidOf(body.id));
    expect(openChunk(chunk!.body)[0]).toEqual({
      to: germanMobile(1),
      ref: 'anna',
      timeZone: 'Europe/Berlin',
      parameters: { greeting: 'Hi "A";\nsecond line' },
    });
  });

  it('without a plus are read as declared, and otherwise rejected with that hint', async () => {
    const csv = 'phone\n919999900000\n';
    await expect(send(csv)).resolves.toMatchObject({
      status: 201,
      body: { accepted: 0, rejectedSample: [{ row: 2, value: '9199******00', code: 'number_needs_country' }] },
    });
    await expect(send(csv, '?digits=international')).resolves.toMatchObject({ body: { accepted: 1, warnings: [] } });
    await expect(send('phone\n919876543210\n', '?defaultCountry=DE')).resolves.toMatchObject({
      body: { accepted: 1, warnings: [{ code: 'number_valid_both_ways', count: 1, rows: [2] }] },
    });
  });

  it('that leave parameters out are counted by parameter', async () => {
    const { body } = await send(`phone,a,b\n${germanMobile(1)},x,\n${germanMobile(2)},,\n`);
    expect(body.parameters).toEqual([
      { name: 'a', missing: 1, firstMissingRow: 3 },
      { name: 'b', missing: 2, firstMissingRow: 2 },
    ]);
  });

  it('that are rejected are shown whatever is in them', async () => {
    const strange = `${'😀'.repeat(60)},x\n"not, a ""number""",\u0001\n${germanMobile(9)},\u0001\u{10ffff}\n`;
    const { status, body } = await send(`phone,a\n${strange}`);
    expect({ status, shown: body.rejectedSample?.map(({ value }: { value: string }) => value) }).toEqual({
      status: 201,
      shown: ['😀'.repeat(20), 'not, a "number"'],
    });
    const file = await fetch(`${api.origin}/v1/audiences/${body.id}/rejected`, {
      headers: { authorization: `Bearer ${key}`, accept: 'text/csv' },
    });
    expect(await file.text()).toContain('3,"not, a ""number""",number_invalid,');
  });

  it('can all be rejected, over as many pages as it takes', async () => {
    const bad = Array.from({ length: 2_345 }, (_, index) => `x${index}`).join('\n');
    const { body } = await send(`phone\n${bad}\n`);
    expect(body).toMatchObject({ accepted: 0, rejected: 2_345 });
    const rows: number[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await api.request('GET', `/v1/audiences/${body.id}/rejected?limit=500${cursor && `&cursor=${cursor}`}`, {
        key,
      });
      rows.push(...page.body.data.map(({ row }: { row: number }) => row));
      cursor = page.body.nextCursor as string | null;
    }
    expect(rows).toEqual(Array.from({ length: 2_345 }, (_, index) => index + 2));
  });
});

describe('two uploads at once', () => {
  it('each become their own audience', async () => {
    const [one, other] = await Promise.all([send(csvRows(30_000)), send(csvRows(20_000, 1_000_000))]);
    expect([one.body.accepted, other.body.accepted]).toEqual([30_000, 20_000]);
    for (const [answer, from] of [
      [one, 0],
      [other, 1_000_000],
    ] as const) {
      const chunks = await tables.chunksOf(uuidOf(answer.body.id));
      const numbers = chunks.flatMap(({ body }) => openChunk(body).map(({ to }) => to));
      expect(numbers).toEqual(Array.from({ length: answer.body.accepted }, (_, index) => germanMobile(from + index)));
    }
  });
});

describe('an upload of 110 MB', () => {
  it('takes no more memory than its hashes and what is under way', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = (): number => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return (heapUsed + external) / 1_048_576;
    };
    const filler = 'x'.repeat(500);
    const samples: number[] = [];
    const rows = function* (): Generator<Buffer> {
      yield Buffer.from('phone,text\n');
      for (let at = 0; at < 200_000; at += 200) {
        if (at % 20_000 === 0) samples.push(used());
        yield Buffer.from(Array.from({ length: 200 }, (_, index) => `${germanMobile(at + index)},${filler}\n`).join(''));
      }
    };
    await expect(send(rows())).resolves.toMatchObject({ status: 201, body: { accepted: 200_000 } });
    expect(Math.max(...samples) - samples[0]!).toBeLessThan(40);
  });
});

describe('a repeat with the same Idempotency-Key', () => {
  const csv = `phone\n${germanMobile(7)}\n`;

  it('gets the first answer for the same file, however it is sent', async () => {
    const named = { 'idempotency-key': 'upload-1' };
    const first = await send(csv, '?name=a', named);
    const again = await send(gzipSync(csv), '?name=a', { ...named, 'content-encoding': 'gzip' });
    expect(again).toMatchObject({ status: 201, body: first.body });
    expect(again.headers).toMatchObject({ 'idempotent-replayed': 'true', location: first.headers.location });
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    await expect(send(csv, '?name=a')).resolves.not.toMatchObject({ body: { id: first.body.id } });
  });

  it('is refused for another file or other parameters', async () => {
    const named = { 'idempotency-key': 'upload-2' };
    await send(csv, '', named);
    for (const [body, query] of [
      [`${csv}${germanMobile(8)}\n`, ''],
      [csv, '?digits=international'],
    ] as const) {
      await expect(send(body, query, named)).resolves.toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } });
    }
  });

  it('sent at the same time makes one audience', async () => {
    const before = await tables.counts();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => send(csvRows(3_000), '', { 'idempotency-key': 'upload-3' })),
    );
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(answers.filter(({ headers }) => headers['idempotent-replayed']).length).toBe(3);
    await tables.untilCounts({ ...before, ready: before.ready + 1, chunks: before.chunks + 6 });
  });

  it('after a refusal is the first one', async () => {
    const named = { 'idempotency-key': 'upload-4' };
    await expect(send('name\nx\n', '', named)).resolves.toMatchObject({ status: 422 });
    await expect(send(csv, '', named)).resolves.toMatchObject({ status: 201 });
  });
});
