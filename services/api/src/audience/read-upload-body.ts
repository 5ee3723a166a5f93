import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { settleWithin } from '#runtime/settle-within';
import { UploadRefused } from './storing/upload-refused';

export interface BodyOptions {
  gzip: boolean;
  /** A client that does not send `ENOUGH_BYTES` within this time is given up; time in which we don't read does not count. */
  stallMs: number;
}

/** A client that sends a byte now and then would hold its place for ever. */
const ENOUGH_BYTES = 16 * 1024;

/**
 * The body as it comes from the socket, decompressed. The request itself is never destroyed here, whatever happens: its socket
 * has to carry the answer that says why the upload ended.
 */
export async function* readUploadBody(request: IncomingMessage, { gzip, stallMs }: BodyOptions): AsyncGenerator<Buffer> {
  const source = gzip ? decompress(request) : request;
  const parts = source.iterator({ destroyOnReturn: gzip }) as AsyncIterator<Buffer>;
  let leftMs = stallMs;
  let bytes = 0;
  try {
    for (;;) {
      const start = performance.now();
      const next = await settleWithin(parts.next(), leftMs, () => stalled(stallMs));
      if (next.done) break;
      leftMs -= performance.now() - start;
      bytes += next.value.length;
      if (bytes >= ENOUGH_BYTES) {
        leftMs = stallMs;
        bytes = 0;
      }
      yield next.value;
    }
    if (!request.complete) throw interrupted();
  } catch (error) {
    throw error instanceof UploadRefused ? error : faultOf(error, request);
  } finally {
    if (gzip) {
      request.unpipe();
      source.destroy();
    } else {
      // A pending read must neither hold the generator up nor end the process when the socket goes.
      void Promise.resolve(parts.return?.()).catch(() => undefined);
    }
  }
}

function decompress(request: IncomingMessage): ReturnType<typeof createGunzip> {
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  const lost = (): void => void gunzip.destroy(interrupted());
  request.once('error', lost).once('aborted', lost);
  return request.pipe(gunzip);
}

function faultOf(error: unknown, request: IncomingMessage): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code?.startsWith('Z_')) {
    const cutOff = code === 'Z_BUF_ERROR';
    return new UploadRefused(
      'compression_invalid',
      cutOff ? 'The gzip data ends before its end: the file was cut off.' : `The body is no gzip data (${message}).`,
    );
  }
  return request.complete && !request.destroyed ? (error as Error) : interrupted();
}

function stalled(stallMs: number): UploadRefused {
  const kilobytes = ENOUGH_BYTES / 1_024;
  return new UploadRefused(
    'upload_stalled',
    `Less than ${kilobytes} KB came in ${stallMs / 1_000} s. Upload again when the connection is better, compressed with gzip if you can.`,
  );
}

function interrupted(): UploadRefused {
  return new UploadRefused(
    'upload_interrupted',
    'The connection ended before the upload did; nothing of it was kept. Upload again.',
  );
}
