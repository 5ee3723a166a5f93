import { gunzipSync, gzip } from 'node:zlib';
import { promisify } from 'node:util';

const gzipAsync = promisify(gzip);

/** A broker takes no record above 1 MB by default; a thousand statuses are half of that, but a webhook may have 4 MB. */
const PLAIN_AT_MOST = 512 * 1024;
const GZIP_MAGIC = [0x1f, 0x8b] as const;

/** The body as it goes into the topic: as it came, or deflated where it is large. JSON never starts like gzip. */
export async function packBody(body: Buffer): Promise<Buffer> {
  return body.length <= PLAIN_AT_MOST ? body : gzipAsync(body, { level: 1 });
}

export function unpackBody(packed: Buffer): Buffer {
  const deflated = packed[0] === GZIP_MAGIC[0] && packed[1] === GZIP_MAGIC[1];
  return deflated ? gunzipSync(packed, { maxOutputLength: 16 * 1024 * 1024 }) : packed;
}
