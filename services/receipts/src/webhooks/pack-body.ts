import { gunzipSync, gzip } from 'node:zlib';
import { promisify } from 'node:util';

const gzipAsync = promisify(gzip);

/** A broker takes no record above 1 MB by default; a thousand statuses are half of that, but a webhook may have 4 MB. */
const PLAIN_AT_MOST = 512 * 1024;

export interface PackedBody {
  bytes: Buffer;
  isPacked: boolean;
}

/** The body as it goes into the topic: as it came, or deflated where it is large. */
export async function packBody(body: Buffer): Promise<PackedBody> {
  if (body.length <= PLAIN_AT_MOST) return { bytes: body, isPacked: false };
  return { bytes: await gzipAsync(body, { level: 1 }), isPacked: true };
}

export function unpackBody({ bytes, isPacked }: PackedBody): Buffer {
  return isPacked ? gunzipSync(bytes, { maxOutputLength: 16 * 1024 * 1024 }) : bytes;
}

/**
 * Beside the record and not read off its bytes: a signed body may begin with anything, the marks of gzip too. Only packed records
 * have it, since each header costs a quarter of a record.
 */
export function headersOf(isPacked: boolean): Record<string, string> | undefined {
  return isPacked ? { 'content-encoding': 'gzip' } : undefined;
}

export function isPackedBy(headers: Readonly<Record<string, string>>): boolean {
  return headers['content-encoding'] === 'gzip';
}
