import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Lingering } from '#runtime/http/linger-after-answers';
import { problemOf, refuse, type Refusal } from '../problem/problem-table';

export interface SocketRefusals {
  /** Where the API is reached. */
  origin: () => string;
  newCorrelationId: () => string;
  headersDeadlineMs: number;
  lingering: Lingering;
}

/**
 * Problems for what never becomes a request: the HTTP server sees no headers, no end of them, or no HTTP at all. There is no response
 * object then, so the answer is written to the socket as it is.
 */
export function refuseOnSocket(server: Server, parts: SocketRefusals): (error: Error, socket: Socket) => void {
  const refused = new WeakSet<Socket>();
  const answering = new WeakMap<Socket, ServerResponse>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) =>
    answering.set(request.socket, response),
  );

  const answer = (socket: Socket, refusal: Refusal): void => {
    // The parser reports its error again with everything that still comes.
    if (refused.has(socket)) return;
    refused.add(socket);
    const response = answering.get(socket);
    const halfAnswered = response !== undefined && response.headersSent && !response.writableFinished;
    if (!socket.writable || halfAnswered) return void socket.destroy();
    const problem = problemOf(refusal, parts.origin(), '/');
    const body = JSON.stringify(problem.body);
    const head = [
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-correlation-id: ${parts.newCorrelationId()}`,
      `date: ${new Date().toUTCString()}`,
      'connection: close',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    parts.lingering.leave(socket);
  };

  // A tunnel is asked for; without a listener the socket would be closed without a word.
  server.on('connect', (_request: IncomingMessage, socket: Socket) => answer(socket, refuse('not_found')));
  return (error, socket) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNRESET' || socket.destroyed) return void socket.destroy();
    answer(socket, refusalFor(error, parts.headersDeadlineMs));
  };
}

function refusalFor(error: Error, headersDeadlineMs: number): Refusal {
  const { code, reason } = error as NodeJS.ErrnoException & { reason?: string };
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refuse('request_stalled', { detail: `The headers were not whole after ${headersDeadlineMs / 1_000} s.` });
    case 'HPE_HEADER_OVERFLOW':
      return refuse('headers_too_large');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return refuse('body_too_large', { detail: 'The chunks of the body carry too many extensions.' });
    default:
      // The parser's own words, which quote nothing of the request.
      return refuse('request_unreadable', reason ? { detail: `${reason}; the connection was closed.` } : {});
  }
}
