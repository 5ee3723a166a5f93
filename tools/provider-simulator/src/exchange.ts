import type { IncomingMessage, ServerResponse } from 'node:http';

/** One request and what may become of it. Every ending is harmless when the caller has gone already. */
export class Exchange {
  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {}

  reply(httpStatus: number, headers: string[], body: string): void {
    if (this.response.destroyed) return;
    headers.push('content-length', String(Buffer.byteLength(body)));
    this.response.writeHead(httpStatus, headers);
    // A string leaves in one write with the head, a buffer in two.
    this.response.end(body);
  }

  /** Announces the whole body, writes half of it and closes the connection. */
  replyHalf(httpStatus: number, headers: string[], body: string): void {
    if (this.response.destroyed) return;
    const bytes = Buffer.from(body, 'utf8');
    headers.push('content-length', String(bytes.length));
    this.response.writeHead(httpStatus, headers);
    this.response.write(bytes.subarray(0, bytes.length >> 1), () => this.request.socket.destroy());
  }

  drop(how: 'close' | 'reset'): void {
    if (how === 'reset') this.request.socket.resetAndDestroy();
    else this.request.socket.destroy();
  }
}
