import { formatId, uuidBytes } from '#contracts/ids';
import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { unseal } from '#runtime/sealed-secret';

const READ = sqlFile(__dirname, 'read-webhook-number.sql');

/** What a webhook endpoint must know of its number. */
export interface WebhookNumber {
  /** UUID text. */
  numberId: string;
  /** As in the path: num_... */
  endpointId: string;
  provider: string;
  appSecret: string | null;
  verifyToken: string | null;
}

interface Entry {
  /** Null: there is no such number. */
  number: WebhookNumber | null;
  loadedAt: number;
  loading: Promise<void> | null;
}

const REFRESH_AFTER_MS = 30_000;
/** A body that fits no secret makes us look for a new one, but a flood of them not for each. */
const LOOK_AGAIN_AFTER_MS = 1_000;
const MOST_NUMBERS = 20_000;

/**
 * The secrets of numbers, opened once and kept. Known ones are refreshed beside the requests, so that none waits for the
 * database, and stay in use while it is away.
 */
export class WebhookSecrets {
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly database: Queryable,
    private readonly credentialsKey: Buffer,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Null where there is no such number. Rejects if the number was never seen and the database does not answer. */
  async find(numberId: string): Promise<WebhookNumber | null> {
    const entry = this.entries.get(numberId);
    if (!entry || entry.number === null) {
      if (!entry || this.clock.monotonicMs() - entry.loadedAt > LOOK_AGAIN_AFTER_MS) await this.load(numberId);
      return this.entries.get(numberId)?.number ?? null;
    }
    if (this.clock.monotonicMs() - entry.loadedAt > REFRESH_AFTER_MS) this.refresh(numberId);
    return entry.number;
  }

  /** For a request that did not fit: the secret may have been changed a moment ago. Answers what is known now. */
  async findChanged(numberId: string): Promise<WebhookNumber | null> {
    const entry = this.entries.get(numberId);
    if (entry && this.clock.monotonicMs() - entry.loadedAt <= LOOK_AGAIN_AFTER_MS) return entry.number;
    await this.load(numberId).catch(() => undefined);
    return this.entries.get(numberId)?.number ?? null;
  }

  private refresh(numberId: string): void {
    this.load(numberId).catch((error: unknown) =>
      this.log.warn('the secrets of a number could not be refreshed; the known ones stay in use', { numberId, error }),
    );
  }

  private load(numberId: string): Promise<void> {
    const known = this.entries.get(numberId);
    if (known?.loading) return known.loading;
    const loading = this.read(numberId).then(
      (number) => this.keep(numberId, { number, loadedAt: this.clock.monotonicMs(), loading: null }),
      (error: unknown) => {
        // Not again for every request of the outage.
        if (known) this.keep(numberId, { ...known, loadedAt: this.clock.monotonicMs(), loading: null });
        else this.entries.delete(numberId);
        throw error;
      },
    );
    this.keep(numberId, { number: known?.number ?? null, loadedAt: known?.loadedAt ?? -Infinity, loading });
    return loading;
  }

  private keep(numberId: string, entry: Entry): void {
    if (this.entries.size >= MOST_NUMBERS && !this.entries.has(numberId)) this.entries.clear();
    this.entries.set(numberId, entry);
  }

  private async read(numberId: string): Promise<WebhookNumber | null> {
    const [row] = await this.database.rows<{
      provider: string;
      webhook_secret: Buffer | null;
      webhook_verify_token: Buffer | null;
    }>(READ, [numberId]);
    if (!row) return null;
    const endpointId = formatId('num', uuidBytes(numberId));
    const open = (sealed: Buffer | null) => (sealed ? unseal(this.credentialsKey, sealed, endpointId).toString('utf8') : null);
    const appSecret = open(row.webhook_secret);
    return { numberId, endpointId, provider: row.provider, appSecret, verifyToken: open(row.webhook_verify_token) };
  }
}
