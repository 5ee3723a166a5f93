import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedWebhook {
  headers: NodeJS.Dict<string | string[]>;
  raw: string;
}

export interface ReceivedStatus {
  id: string;
  status: string;
  timestamp: string;
  recipient_id?: string;
  biz_opaque_callback_data?: string;
  errors?: { code: number }[];
}

/** An endpoint for webhooks that keeps what it gets. `answerWith` decides the HTTP status of each post. */
export class WebhookReceiver {
  readonly webhooks: ReceivedWebhook[] = [];
  readonly challenges: string[] = [];
  answerWith: (post: number) => number = () => 200;
  verifyToken = 'verify-me';
  #server!: Server;
  url = '';

  async start(port = 0): Promise<this> {
    this.#server = createServer((request, response) => {
      const query = new URL(request.url!, 'http://receiver').searchParams;
      if (request.method === 'GET') {
        this.challenges.push(query.get('hub.challenge') ?? '');
        const verified = query.get('hub.mode') === 'subscribe' && query.get('hub.verify_token') === this.verifyToken;
        response.writeHead(verified ? 200 : 403).end(verified ? query.get('hub.challenge') : 'no');
        return;
      }
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        this.webhooks.push({ headers: request.headers, raw: Buffer.concat(pieces).toString('latin1') });
        response.writeHead(this.answerWith(this.webhooks.length)).end();
      });
    });
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hooks/wa`;
    return this;
  }

  get statuses(): ReceivedStatus[] {
    return this.webhooks.flatMap(({ raw }) => {
      const body = JSON.parse(raw) as { entry: { changes: { value: { statuses?: ReceivedStatus[] } }[] }[] };
      return body.entry.flatMap(({ changes }) => changes.flatMap(({ value }) => value.statuses ?? []));
    });
  }

  statusNames(): string[] {
    return this.statuses.map(({ status }) => status);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
