import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { UploadRefused } from './upload-refused';

export interface BodyOptions {
  gzip: boolean;
  /** A client that sends nothing for this long is given up. */
  stallMs: number;
}

/**
 * The body as it comes from the socket, decompressed. The request itself is never destroyed here, whatever happens: its socket
 * has to carry the answer that says why the upload ended.
 */
export async function* readUploadBody(request: IncomingMessage, { gzip, stallMs }: BodyOptions): AsyncGenerator<Buffer> {
  const source = gzip ? decompress(request) : request;
  const parts = source.iterator({ destroyOnReturn: gzip }) as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const next = await withinStall(parts.next(), stallMs);
      if (next.done) break;
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

async function withinStall<T>(reading: Promise<T>, stallMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  reading.catch(() => undefined);
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new UploadRefused('upload_stalled', `No byte came for ${stallMs / 1_000} s; upload again when the connection is better.`)),
      stallMs,
    );
  });
  try {
    return await Promise.race([reading, stalled]);
  } finally {
    clearTimeout(timer);
  }
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

function interrupted(): UploadRefused {
  return new UploadRefused('upload_interrupted', 'The connection ended before the upload did; nothing of it was kept. Upload again.');
}
