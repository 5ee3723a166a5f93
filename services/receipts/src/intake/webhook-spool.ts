import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';

const WRITE = sqlFile(__dirname, 'spool-webhooks.sql');
const TAKE = sqlFile(__dirname, 'take-spooled.sql');
const RELEASE = sqlFile(__dirname, 'release-spooled.sql');
const DELETE = sqlFile(__dirname, 'delete-spooled.sql');

export interface SpooledWebhook {
  eventId: string;
  endpointId: string;
  value: Buffer;
  isPacked: boolean;
  receivedAtMs: number;
}

export interface TakenWebhook {
  id: string;
  event_id: string;
  endpoint_id: string;
  value: Buffer;
  packed: boolean;
}

interface Pending {
  webhook: SpooledWebhook;
  done(): void;
  failed(error: unknown): void;
}

/** Longer than a send takes to give up, so that nobody takes what is still on its way. */
const LEASE_MS = 120_000;
const ROWS_AT_ONCE = 200;

/** Where webhooks wait in PostgreSQL while Kafka takes none. */
export class WebhookSpool {
  private pending: Pending[] = [];
  private writing = false;

  constructor(private readonly database: Queryable) {}

  /** Fulfils when it is committed. What arrives while a statement is out goes with the next one. */
  keep(webhook: SpooledWebhook): Promise<void> {
    const kept = new Promise<void>((done, failed) => this.pending.push({ webhook, done, failed }));
    if (!this.writing) void this.write();
    return kept;
  }

  take(): Promise<TakenWebhook[]> {
    return this.database.rows<TakenWebhook>(TAKE, [ROWS_AT_ONCE, LEASE_MS]);
  }

  /** Not relayed after all: the next step may take them at once. */
  async release(ids: string[]): Promise<void> {
    await this.database.rows(RELEASE, [ids]);
  }

  async delete(ids: string[]): Promise<void> {
    await this.database.rows(DELETE, [ids]);
  }

  private async write(): Promise<void> {
    this.writing = true;
    while (this.pending.length > 0) {
      const batch = this.pending.splice(0, ROWS_AT_ONCE);
      const webhooks = batch.map(({ webhook }) => webhook);
      await this.database
        .rows(WRITE, [
          webhooks.map(({ eventId }) => eventId),
          webhooks.map(({ endpointId }) => endpointId),
          webhooks.map(({ value }) => value),
          webhooks.map(({ receivedAtMs }) => receivedAtMs),
          webhooks.map(({ isPacked }) => isPacked),
        ])
        .then(
          () => batch.forEach(({ done }) => done()),
          (error: unknown) => batch.forEach(({ failed }) => failed(error)),
        );
    }
    this.writing = false;
  }
}
