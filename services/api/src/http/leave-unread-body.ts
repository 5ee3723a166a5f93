import type { IncomingMessage } from 'node:http';

/** Long enough for a client to notice the answer while it still sends. */
const LINGER_MS = 5_000;

/**
 * After an answer that came before the body's end: closing at once would reset the connection and could take the answer with
 * it, reading on to the end would let anybody send for ever. So what comes is thrown away for a moment, then the socket closes.
 */
export function leaveUnreadBody(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  request.resume();
  const closing = setTimeout(() => request.destroy(), LINGER_MS).unref();
  request.once('end', () => clearTimeout(closing)).once('error', () => clearTimeout(closing));
}
