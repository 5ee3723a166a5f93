import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ControlDesk } from './control/control-desk';
import { Exchange } from './exchange';
import { graphErrorBody } from './graph/graph-errors';
import { SendDesk } from './handle-send';
import { answerRead } from './answer-read';
import type { Simulator } from './simulator';
import { DelayLoop } from './timing/delay-loop';

const SEND_PATH = /^(?:\/v[0-9]+\.[0-9]+)?\/([0-9]{1,32})\/(?:marketing_)?messages(?:\?|$)/;
const CONTROL_PREFIX = '/control/';
const MAX_SEND_BYTES = 1_000_000;
const MAX_CONTROL_BYTES = 16_000_000;

/** The provider's HTTP side: sends and reads as the Graph API has them, and everything under /control/. */
export class ProviderServer {
  readonly #server: Server;
  readonly #answers: DelayLoop<() => void>;
  readonly #sendDesk: SendDesk;
  readonly #controlDesk: ControlDesk;

  constructor(private readonly simulator: Simulator) {
    this.#answers = new DelayLoop(simulator.clock, (answer) => answer());
    this.#sendDesk = new SendDesk(simulator, (dueMs, answer) => this.#runAt(dueMs, answer));
    this.#controlDesk = new ControlDesk(simulator);
    this.#server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 0 }, (request, response) =>
      this.#receive(request, response),
    );
  }

  async listen(port: number, host: string): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, 4096, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends open connections too: requests that hang by order would otherwise keep the process. */
  async stop(): Promise<void> {
    this.#answers.stop();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #runAt(dueMs: number, answer: () => void): void {
    if (dueMs <= this.#answers.nowMs()) answer();
    else this.#answers.schedule(dueMs, answer);
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const monotonicMicros = this.simulator.clock.monotonicMicros();
    const wallMicros = this.simulator.clock.wallMicros();
    const url = request.url ?? '/';
    if (url.startsWith(CONTROL_PREFIX)) {
      return collectBody(request, response, MAX_CONTROL_BYTES, (body) => void this.#controlDesk.handle(request, response, body));
    }
    const send = request.method === 'POST' ? SEND_PATH.exec(url) : null;
    if (send) {
      const exchange = new Exchange(request, response);
      return collectBody(request, response, MAX_SEND_BYTES, (body) =>
        this.#sendDesk.handle({
          phoneNumberId: send[1]!,
          accessToken: bearerToken(request.headers.authorization),
          monotonicMicros,
          wallMicros,
          body,
          exchange,
        }),
      );
    }
    request.resume();
    const answer = answerRead(this.simulator, request.method ?? 'GET', url, bearerToken(request.headers.authorization));
    new Exchange(request, response).reply(answer.httpStatus, ['content-type', 'application/json; charset=UTF-8'], answer.body);
  }
}

function bearerToken(authorization: string | undefined): string | undefined {
  return authorization?.startsWith('Bearer ') ? authorization.slice(7).trim() : undefined;
}

/** Bodies of sends come in one piece nearly always; joining is for the others. */
function collectBody(request: IncomingMessage, response: ServerResponse, maxBytes: number, done: (body: string) => void): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= maxBytes) pieces.push(piece);
  });
  request.on('end', () => {
    if (bytes > maxBytes) {
      const body = graphErrorBody({ code: 1, title: 'The request body is too large' }, 'none');
      return new Exchange(request, response).reply(413, ['content-type', 'application/json; charset=UTF-8'], body);
    }
    done(pieces.length === 1 ? pieces[0]!.toString('utf8') : Buffer.concat(pieces).toString('utf8'));
  });
}
