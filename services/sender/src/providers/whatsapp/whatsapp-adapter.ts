import { Pool } from 'undici';
import type { Health, ProviderAdapter, ProviderNumber, SendCall, SendOutcome } from '../provider';
import { buildRequest } from './build-request';
import { classifyAnswer } from './classify-answer';
import { ProviderCall } from './provider-call';
import { readHealth } from './read-health';
import { WarmConnections } from './warm-connections';

export interface WhatsAppOptions {
  liveUrl: string;
  /** Where numbers of test tenants go; never the live one. */
  testUrl: string;
  /** For instance v25.0; without one the app's newest version would apply, so it is always given. */
  apiVersion: string;
  /** At least rate x latency for each host, over all numbers. */
  connections: number;
  connectTimeoutMs?: number;
  /** Every try to connect to a host of that mode; null when it succeeded. What a circuit goes by. */
  onConnection?(mode: ProviderNumber['mode'], error: Error | null): void;
}

/** Idle connections are closed before the other side does it: a reset under a request is an uncertain message. */
const KEEP_ALIVE_MS = 4_000;

interface Host {
  pool: Pool;
  warm: WarmConnections;
  path: string;
}

/** The WhatsApp Cloud API. */
export function whatsAppAdapter(options: WhatsAppOptions): ProviderAdapter {
  return new WhatsAppAdapter(options);
}

class WhatsAppAdapter implements ProviderAdapter {
  private readonly hosts: Record<ProviderNumber['mode'], Host>;

  constructor(private readonly options: WhatsAppOptions) {
    this.hosts = { live: this.host('live', options.liveUrl), test: this.host('test', options.testUrl) };
  }

  build = buildRequest;

  send(call: SendCall): Promise<SendOutcome> {
    const { pool, path } = this.hosts[call.number.mode];
    return new Promise((resolve) => {
      const handler = new ProviderCall(call, resolve);
      try {
        pool.dispatch(
          {
            method: 'POST',
            path: `${path}/${call.number.providerNumberId}/messages`,
            headers: { authorization: `Bearer ${call.number.accessToken.reveal()}`, 'content-type': 'application/json' },
            body: call.body,
            // A POST is not idempotent by default; said here because everything depends on it.
            idempotent: false,
          },
          handler,
        );
      } catch (error) {
        // What can't even be a request, a token with a line break in it, say.
        handler.onResponseError(undefined, error as Error);
      }
    });
  }

  warm(mode: ProviderNumber['mode'], connections: number): void {
    const { pool, warm } = this.hosts[mode];
    const missing = Math.min(connections, this.options.connections) - pool.stats.connected;
    if (missing > 0) warm.warm(missing);
  }

  async health(number: ProviderNumber): Promise<Health> {
    const { pool, path } = this.hosts[number.mode];
    try {
      const { statusCode, headers, body } = await pool.request({
        method: 'GET',
        path: `${path}/${number.providerNumberId}?fields=health_status`,
        headers: { authorization: `Bearer ${number.accessToken.reveal()}` },
        headersTimeout: 10_000,
        bodyTimeout: 10_000,
      });
      const text = await body.text();
      if (statusCode === 200) return readHealth(text);
      const answer = classifyAnswer({ status: statusCode, headers, body: text }, Date.now());
      return {
        sendable: false,
        detail: answer.class === 'accepted' ? 'no health status' : `${answer.class} ${answer.providerCode ?? ''}`.trim(),
      };
    } catch (error) {
      return {
        sendable: null,
        detail: `the provider could not be asked: ${(error as NodeJS.ErrnoException).code ?? 'no answer'}`,
      };
    }
  }

  async close(): Promise<void> {
    await Promise.all(
      Object.values(this.hosts).map(async ({ pool, warm }) => {
        warm.close();
        await pool.destroy();
      }),
    );
  }

  private host(mode: ProviderNumber['mode'], url: string): Host {
    const { origin, pathname } = new URL(url);
    const warm = new WarmConnections(origin, this.options.connectTimeoutMs ?? 3_000, (error) =>
      this.options.onConnection?.(mode, error),
    );
    const pool = new Pool(origin, {
      connections: this.options.connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // The call has its own deadline, which tells the two sides of the first byte apart.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: warm.connect,
    });
    return { pool, warm, path: `${pathname.replace(/\/$/, '')}/${this.options.apiVersion}` };
  }
}
