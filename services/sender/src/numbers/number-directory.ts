import { formatId, uuidBytes } from '#contracts/ids';
import { silentLog, type Log } from '#runtime/log';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { unseal } from '#runtime/sealed-secret';
import { Secret } from '#runtime/secret';

const READ_NUMBERS = sqlFile(__dirname, 'read-numbers.sql');
const READ_CREDENTIALS = sqlFile(__dirname, 'read-credentials.sql');

export interface SendingNumber {
  numberId: string;
  tenantId: string;
  mode: 'test' | 'live';
  channel: 'whatsapp' | 'sms';
  provider: string;
  providerIdentity: string;
  providerNumberId: string;
  wabaId: string | null;
  appId: string | null;
  ratePerSecond: number;
  version: number;
  removed: boolean;
  /** Null when they can't be opened: the number can't send. */
  accessToken: Secret | null;
}

interface NumberRow {
  number_id: string;
  tenant_id: string;
  mode: 'test' | 'live';
  channel: 'whatsapp' | 'sms';
  provider: string;
  provider_identity: string;
  provider_number_id: string;
  waba_id: string | null;
  app_id: string | null;
  rate_per_second: number;
  version: number;
  removed: boolean;
}

/** The installation's numbers as the api has them. Credentials are fetched and opened for owned ones only, once a version. */
export class NumberDirectory {
  private numbers = new Map<string, SendingNumber>();
  private readonly tokens = new Map<string, { version: number; token: Secret | null }>();
  private readonly log: Log;

  constructor(
    private readonly database: Database,
    private readonly credentialsKey: Buffer,
    log: Log = silentLog,
  ) {
    this.log = log.with({ part: 'numbers' });
  }

  get(numberId: string): SendingNumber | undefined {
    return this.numbers.get(numberId);
  }

  all(): Iterable<SendingNumber> {
    return this.numbers.values();
  }

  /** One reading; `owned` says whose credentials are wanted. */
  async refreshOnce(owned: (number: { providerIdentity: string }) => boolean): Promise<void> {
    const rows = await this.database.rows<NumberRow>(READ_NUMBERS);
    const wanting = rows.filter(
      (row) => owned({ providerIdentity: row.provider_identity }) && this.tokens.get(row.number_id)?.version !== row.version,
    );
    if (wanting.length > 0) await this.readTokens(wanting.map((row) => row.number_id));
    this.numbers = new Map(
      rows.map((row) => [
        row.number_id,
        {
          numberId: row.number_id,
          tenantId: row.tenant_id,
          mode: row.mode,
          channel: row.channel,
          provider: row.provider,
          providerIdentity: row.provider_identity,
          providerNumberId: row.provider_number_id,
          wabaId: row.waba_id,
          appId: row.app_id,
          ratePerSecond: row.rate_per_second,
          version: row.version,
          removed: row.removed,
          accessToken: this.tokens.get(row.number_id)?.token ?? null,
        },
      ]),
    );
    for (const numberId of this.tokens.keys()) if (!this.numbers.has(numberId)) this.tokens.delete(numberId);
  }

  private async readTokens(numberIds: string[]): Promise<void> {
    const rows = await this.database.rows<{ number_id: string; version: number; credentials: Buffer }>(READ_CREDENTIALS, [
      numberIds,
    ]);
    for (const { number_id, version, credentials } of rows) {
      this.tokens.set(number_id, { version, token: this.open(number_id, credentials) });
    }
  }

  private open(numberId: string, credentials: Buffer): Secret | null {
    const boundTo = formatId('num', uuidBytes(numberId));
    try {
      const { accessToken } = JSON.parse(unseal(this.credentialsKey, credentials, boundTo).toString('utf8')) as {
        accessToken?: unknown;
      };
      if (typeof accessToken === 'string' && accessToken !== '') return new Secret(accessToken);
      this.log.error('the credentials of a number hold no access token; it sends nothing until they are put again', {
        numberId: boundTo,
      });
    } catch (error) {
      this.log.error(
        'the credentials of a number can not be opened; it sends nothing until CREDENTIALS_KEY fits or they are put again',
        {
          numberId: boundTo,
          error,
        },
      );
    }
    return null;
  }
}
