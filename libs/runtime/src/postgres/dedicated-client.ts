import { Client, type QueryResultRow } from 'pg';
import { silentLog, type Log } from '../log';
import type { Queryable, Statement } from './database';
import { DatabaseUnavailableError, isConnectionLoss } from './failures';
import { pause } from '../pause';

export interface DedicatedClientOptions {
  url: string;
  name: string;
  log?: Log;
  /** A connection that does not answer for this long is given up, with its locks; 3 s if absent. */
  answerTimeoutMs?: number;
}

/**
 * One connection of its own, for what belongs to a connection: advisory locks and LISTEN. It reconnects by itself and listens
 * again; its locks are gone with the old connection, and `holds` says so from the moment the loss is noticed.
 */
export class DedicatedClient implements Queryable {
  private client: Client | undefined;
  private held = new Set<string>();
  private readonly channels = new Map<string, () => void>();
  private readonly stop = new AbortController();
  private loop: Promise<void> | undefined;
  private lost: (() => void) | undefined;
  /** Rises with every connection: what was taken under an older one is gone. */
  connection = 0;
  private readonly log: Log;
  private readonly answerTimeoutMs: number;

  constructor(private readonly options: DedicatedClientOptions) {
    this.log = (options.log ?? silentLog).with({ part: options.name });
    this.answerTimeoutMs = options.answerTimeoutMs ?? 3_000;
  }

  get connected(): boolean {
    return this.client !== undefined;
  }

  /** Waits for the first connection; from then on keeps one open until `close`. */
  async connect(): Promise<void> {
    if (this.loop) return;
    let first: () => void = () => undefined;
    const connected = new Promise<void>((resolve) => (first = resolve));
    this.loop = this.keepConnected(first);
    await connected;
  }

  async rows<R extends QueryResultRow>(statement: Statement, values: unknown[] = []): Promise<R[]> {
    const client = this.client;
    if (!client) throw new DatabaseUnavailableError(new Error('not connected'));
    try {
      return (await client.query<R>({ name: statement.name, text: statement.text, values })).rows;
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      this.drop(client);
      throw new DatabaseUnavailableError(error);
    }
  }

  /** True if this connection has the lock, newly or already; false if another has it or there is no connection now. */
  async tryLock(classId: number, key: number): Promise<boolean> {
    const name = `${classId}/${key}`;
    const client = this.client;
    if (this.held.has(name)) return true;
    if (!client) return false;
    try {
      const { rows } = await client.query<{ locked: boolean }>({
        name: 'try_lock',
        text: 'SELECT pg_try_advisory_lock($1, $2) AS locked',
        values: [classId, key],
      });
      if (!rows[0]?.locked || this.client !== client) return false;
      this.held.add(name);
      return true;
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      this.drop(client);
      return false;
    }
  }

  async unlock(classId: number, key: number): Promise<void> {
    const client = this.client;
    if (!this.held.delete(`${classId}/${key}`) || !client) return;
    await client
      .query({ name: 'unlock', text: 'SELECT pg_advisory_unlock($1, $2)', values: [classId, key] })
      .catch(() => this.drop(client));
  }

  holds(classId: number, key: number): boolean {
    return this.held.has(`${classId}/${key}`);
  }

  /** `onNotify` also runs after a reconnect, since what was said meanwhile is lost. `channel` is an identifier of ours. */
  async listen(channel: string, onNotify: () => void): Promise<void> {
    this.channels.set(channel, onNotify);
    await this.client?.query(`LISTEN ${quoted(channel)}`);
  }

  async close(): Promise<void> {
    this.stop.abort();
    this.lost?.();
    await this.loop;
  }

  private async keepConnected(onFirst: () => void): Promise<void> {
    const { signal } = this.stop;
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.holdOneConnection(() => {
          failures = 0;
          onFirst();
        });
      } catch (error) {
        failures++;
        if (failures === 1 || failures % 30 === 0)
          this.log.warn('the dedicated PostgreSQL connection can not be opened; trying again', { error });
      }
      if (!signal.aborted) await pause(Math.min(1_000, 50 * 2 ** failures), signal);
    }
    onFirst();
  }

  private async holdOneConnection(onConnected: () => void): Promise<void> {
    const client = new Client({
      connectionString: this.options.url,
      application_name: this.options.name.slice(0, 63),
      connectionTimeoutMillis: 5_000,
      query_timeout: this.answerTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 2_000,
    });
    const gone = new Promise<void>((resolve) => (this.lost = resolve));
    client.on('error', () => this.drop(client));
    client.on('end', () => this.drop(client));
    client.on('notification', ({ channel }) => this.channels.get(channel)?.());
    try {
      await client.connect();
      // A process that is frozen keeps its connections open, and with them the locks that others wait for. It does not ping.
      await client.query(`SET idle_session_timeout = ${this.answerTimeoutMs * 3}`);
      for (const channel of this.channels.keys()) await client.query(`LISTEN ${quoted(channel)}`);
      this.client = client;
      this.connection++;
      for (const wake of this.channels.values()) wake();
      onConnected();
      // A peer that vanished without closing would leave us believing in locks that the server has long given to another.
      const ping = setInterval(() => void client.query('SELECT 1').catch(() => this.drop(client)), this.answerTimeoutMs);
      await gone;
      clearInterval(ping);
    } finally {
      this.drop(client);
      const patience = new AbortController();
      await Promise.race([client.end().catch(() => undefined), pause(500, patience.signal)]);
      patience.abort();
    }
  }

  private drop(client: Client): void {
    if (this.client !== client) return;
    if (!this.stop.signal.aborted)
      this.log.warn('the dedicated PostgreSQL connection is lost, and its locks with it; reconnecting', {
        count: this.held.size,
      });
    this.client = undefined;
    this.held = new Set();
    this.lost?.();
  }
}

/** A dedicated connection that is open: `dedicatedClient({ url, name })`. */
export async function dedicatedClient(options: DedicatedClientOptions): Promise<DedicatedClient> {
  const client = new DedicatedClient(options);
  await client.connect();
  return client;
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
