import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface LingerOptions {
  /** How long the rest of a body is read at most, in ms. */
  mostMs?: number;
  /** How long to wait for the next piece of it, in ms. */
  quietMs?: number;
}

export interface Lingering {
  /** Lets a connection go whose last answer was written: what still comes is thrown away for a while, then it is closed. */
  leave(socket: Socket): void;
  /** Closes all that are waited for. */
  close(): void;
}

const MOST_MS = 30_000;
const QUIET_MS = 5_000;

/**
 * For answers that come before the body's end. To close at once would reset the connection, and the reset can overtake the answer:
 * the client sees EPIPE instead of what was wrong with its request. To read on to the end would let anybody send for ever. So our
 * side is closed after the answer, what comes is thrown away for a while, then the connection is closed (RFC 9112, section 9.6).
 */
export function lingerAfterAnswers(server: Server, { mostMs = MOST_MS, quietMs = QUIET_MS }: LingerOptions = {}): Lingering {
  const waiting = new Set<Socket>();

  /** A function that ends the waiting, false if it has ended; it ends by itself when the other side does or the time is over. */
  const wait = (socket: Socket): (() => boolean) => {
    waiting.add(socket);
    const end = (): boolean => {
      clearTimeout(most);
      clearTimeout(quiet);
      socket.off('end', close).off('close', end);
      return waiting.delete(socket);
    };
    const close = (): void => {
      if (end()) socket.destroy();
    };
    const most = setTimeout(close, mostMs).unref();
    // Counted, and not listened to: a data listener of ours would take the socket away from the HTTP parser.
    let heard = socket.bytesRead;
    const quiet = setTimeout(() => {
      if (socket.bytesRead === heard) return close();
      heard = socket.bytesRead;
      quiet.refresh();
    }, quietMs).unref();
    socket.on('end', close).on('close', end);
    return end;
  };

  const answered = (request: IncomingMessage): void => {
    const { socket } = request;
    if (request.complete || request.destroyed || socket.destroyed) return;
    const end = wait(socket);
    // The server calls this after an answer with `Connection: close`.
    const closeNow = socket.destroySoon.bind(socket);
    let last = false;
    socket.destroySoon = () => {
      last = true;
      socket.end();
    };
    request.once('end', () => {
      socket.destroySoon = closeNow;
      if (end() && last) closeNow();
    });
    request.resume();
  };

  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    // Before the server's own listener, which closes.
    response.prependListener('finish', () => answered(request));
  });
  return {
    leave: (socket) => {
      socket.end();
      if (!socket.destroyed && !waiting.has(socket)) wait(socket);
    },
    close: () => {
      for (const socket of waiting) socket.destroy();
    },
  };
}
