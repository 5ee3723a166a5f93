import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Client } from 'pg';
import { waitUntil } from '#runtime/wait-until';
import type { TestApi } from '../test-api';

export interface Uploaded {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a test looks into whatever comes
  body: any;
}

export interface UploadOptions {
  key: string;
  query?: string;
  headers?: Record<string, string>;
}

/** The body goes out as it comes, chunked when no length is given. */
export function upload(
  api: TestApi,
  body: Buffer | string | Iterable<Buffer> | AsyncIterable<Buffer>,
  options: UploadOptions,
): Promise<Uploaded> {
  const whole = typeof body === 'string' || Buffer.isBuffer(body);
  return new Promise((resolve, reject) => {
    const sending = httpRequest(
      `${api.origin}/v1/audiences${options.query ?? ''}`,
      {
        method: 'POST',
        headers: {
          authorization: `Bearer ${options.key}`,
          'content-type': 'text/csv',
          ...(whole ? { 'content-length': String(Buffer.byteLength(body)) } : {}),
          ...options.headers,
        },
      },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString();
          resolve({ status: answer.statusCode!, headers: answer.headers, body: text === '' ? null : JSON.parse(text) });
          if (!sending.writableFinished) sending.destroy();
        });
        answer.on('error', reject);
      },
    );
    sending.on('error', reject);
    if (whole) return void sending.end(body);
    const closed = new Promise((resolve) => sending.once('close', resolve));
    void (async () => {
      for await (const part of body) {
        if (sending.destroyed) return;
        if (!sending.write(part)) await Promise.race([once(sending, 'drain'), closed]);
      }
      sending.end();
    })().catch((error: unknown) => sending.destroy(error as Error));
  });
}

/** A connection that has said how much it will upload, to be broken off by the test. */
export async function beginUpload(api: TestApi, key: string, contentLength: number, headers: string[] = []): Promise<Socket> {
  const { hostname, port } = new URL(api.origin);
  const socket = connect(Number(port), hostname);
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  socket.on('error', () => undefined);
  const lines = [
    'POST /v1/audiences HTTP/1.1',
    'host: api',
    `authorization: Bearer ${key}`,
    'content-type: text/csv',
    `content-length: ${contentLength}`,
    ...headers,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

export interface StoredCounts {
  uploading: number;
  ready: number;
  chunks: number;
  rejectedPages: number;
}

/** What the tables hold, whoever it belongs to. */
export class AudienceTables {
  private constructor(private readonly client: Client) {}

  static async open(url: string): Promise<AudienceTables> {
    const client = new Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    return new AudienceTables(client);
  }

  async query<R>(text: string, values: unknown[] = []): Promise<R[]> {
    return (await this.client.query(text, values)).rows as R[];
  }

  async counts(): Promise<StoredCounts> {
    const [row] = await this.query<StoredCounts>(`
      SELECT (SELECT count(*)::int FROM api.audience WHERE status = 'uploading') AS uploading,
        (SELECT count(*)::int FROM api.audience WHERE status = 'ready') AS ready,
        (SELECT count(*)::int FROM api.audience_chunk) AS chunks,
        (SELECT count(*)::int FROM api.audience_rejected) AS "rejectedPages"`);
    return row!;
  }

  async untilCounts(expected: StoredCounts): Promise<void> {
    await waitUntil(`the tables to hold ${JSON.stringify(expected)}`, async () => {
      const found = await this.counts();
      return JSON.stringify(found) === JSON.stringify(expected);
    });
  }

  async chunksOf(audienceId: string): Promise<Array<{ chunk: number; count: number; hashes: Buffer; body: Buffer }>> {
    return this.query('SELECT chunk, count, hashes, body FROM api.audience_chunk WHERE audience_id = $1 ORDER BY chunk', [
      audienceId,
    ]);
  }

  close(): Promise<void> {
    return this.client.end();
  }
}

/** Rows with numbers that are valid and all different. */
export function* csvRows(count: number, from = 0): Generator<Buffer> {
  yield Buffer.from('phone,ref,firstName\n');
  for (let at = 0; at < count; at += 1_000) {
    let text = '';
    for (let row = at; row < Math.min(at + 1_000, count); row++)
      text += `${germanMobile(from + row)},customer-${row},Zoë ${row}\n`;
    yield Buffer.from(text);
  }
}

/** +49 151 and eight digits: every one of them is a valid mobile number. */
export function germanMobile(index: number): string {
  return `+49151${String(10_000_000 + (index % 90_000_000))}`;
}
