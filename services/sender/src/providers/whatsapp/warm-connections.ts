import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

type Connector = ReturnType<typeof buildConnector>;

interface Waiting {
  socket: Socket;
  since: number;
  forget: () => void;
}

/** A connection that was never used is given away for this long; a server may close it, and that must not happen under a request. */
const KEEPS_MS = 4_000;

/**
 * Opens connections ahead of need and hands them to the pool when it wants one. A handshake takes longer than a slot may age, so
 * the first messages after a quiet spell would all miss theirs.
 */
export class WarmConnections {
  private readonly waiting: Waiting[] = [];
  private opening = 0;
  private readonly open: Connector;
  private readonly target: Parameters<Connector>[0];
  private closed = false;

  /** `onConnection` hears of every try to connect: null when it succeeded. */
  constructor(origin: string, connectTimeoutMs: number, onConnection: (error: Error | null) => void) {
    const open = buildConnector({ timeout: connectTimeoutMs, keepAlive: true });
    this.open = (options, callback) =>
      open(options, (...[error, socket]) => {
        onConnection(error);
        if (error) callback(error, null);
        else callback(null, socket);
      });
    const { protocol, hostname, host, port } = new URL(origin);
    this.target = { protocol, hostname, host, port: port || (protocol === 'https:' ? '443' : '80'), servername: hostname };
  }

  readonly connect: Connector = (options, callback) => {
    const ready = this.take();
    // Never called back in the same tick: the pool has not finished adding the client then.
    if (ready) queueMicrotask(() => callback(null, ready));
    else this.open(options, callback);
  };

  get count(): number {
    return this.waiting.length + this.opening;
  }

  /** Until `wanted` are at hand or on the way. */
  warm(wanted: number): void {
    this.dropOld();
    while (!this.closed && this.count < wanted) {
      this.opening++;
      this.open(this.target, (error, socket) => {
        this.opening--;
        if (!error && socket) this.keep(socket);
      });
    }
  }

  close(): void {
    this.closed = true;
    for (const { socket, forget } of this.waiting.splice(0)) {
      forget();
      socket.destroy();
    }
  }

  private keep(socket: Socket): void {
    if (this.closed) {
      socket.destroy();
      return;
    }
    const gone = () => {
      const index = this.waiting.indexOf(entry);
      if (index >= 0) this.waiting.splice(index, 1);
    };
    const events = ['close', 'end', 'error'] as const;
    for (const event of events) socket.on(event, gone);
    const entry: Waiting = {
      socket,
      since: performance.now(),
      forget: () => {
        for (const event of events) socket.off(event, gone);
      },
    };
    this.waiting.push(entry);
  }

  private take(): Socket | undefined {
    this.dropOld();
    const entry = this.waiting.shift();
    entry?.forget();
    return entry?.socket;
  }

  private dropOld(): void {
    const oldest = performance.now() - KEEPS_MS;
    while (this.waiting[0] && (this.waiting[0].since < oldest || this.waiting[0].socket.destroyed)) {
      const { socket, forget } = this.waiting.shift()!;
      forget();
      socket.on('error', () => undefined);
      socket.destroy();
    }
  }
}
