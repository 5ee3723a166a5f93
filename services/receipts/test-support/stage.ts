import { createHmac, randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { attemptToken } from '#contracts/attempt-token';
import { sealChunk } from '#contracts/audience-chunk';
import { Codec } from '#contracts/codec';
import type { EventName, Events } from '#contracts/events';
import { CHUNK_SIZE, bucketOf, derivedEventId, formatId, newUuid, occurrenceId, runId, uuidText } from '#contracts/ids';
import { partitionFor } from '#contracts/murmur2';
import { topicName, type TopicName } from '#contracts/topics';
import { systemClock } from '#runtime/clock';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { seal } from '#runtime/sealed-secret';
import { createTestDatabase, type TestDatabase } from '../../../test-support/isolation';
import type { ReadBatch } from '../src/projection/items';
import { Projection } from '../src/projection/project-batches';
import { readRecord } from '../src/projection/read-record';
import { ToldRuns } from '../src/tell-runs';

export const TOKEN_KEY = Buffer.alloc(32, 7);
export const CREDENTIALS_KEY = Buffer.alloc(32, 9);
export const APP_SECRET = 'punctual-demo-app-secret';
export const VERIFY_TOKEN = 'punctual-verify-1';
export const PARTITIONS = 6;

/** A campaign as the other services would have written and told it. */
export interface Campaign {
  tenantId: Buffer;
  scheduleId: Buffer;
  runId: Buffer;
  numberId: Buffer;
  total: number;
  dueAt: number;
  occurrence(position: number): Buffer;
}

export type Told = { [N in EventName]: { name: N; event: Events[N] } }[EventName];

/** A database with what the projection reads of the api, and the projection over it. */
export class Stage {
  readonly codec = new Codec();
  private readonly offsets = new Map<string, bigint>();

  private constructor(
    readonly test: TestDatabase,
    readonly sql: Client,
    readonly database: PostgresDatabase,
  ) {}

  static async open(): Promise<Stage> {
    const test = await createTestDatabase();
    const sql = new Client({ connectionString: test.adminUrl });
    await sql.connect();
    // Rows of the api without those that they refer to: only what its views show is needed here.
    await sql.query('SET session_replication_role = replica');
    const database = await openDatabase({ url: test.urlFor('punctual_receipts'), name: 'receipts-test', max: 12 });
    return new Stage(test, sql, database);
  }

  async close(): Promise<void> {
    await this.database.close();
    await this.sql.end();
    await this.test.drop();
  }

  projection(): Projection {
    return new Projection(this.projectionOptions());
  }

  toldRuns(): ToldRuns {
    return new ToldRuns(this.projectionOptions());
  }

  private projectionOptions() {
    return {
      database: this.database,
      codec: this.codec,
      clock: systemClock,
      partitions: { receipts: PARTITIONS, status: PARTITIONS },
      evidenceWindowMs: 5_000,
      progressEveryMs: 0,
    };
  }

  async number(): Promise<{ id: Buffer; endpointId: string }> {
    const id = newUuid(Date.now());
    const tenantId = newUuid(Date.now());
    const endpointId = formatId('num', id);
    await this.sql.query(
      `INSERT INTO api.number (id, tenant_id, name, kind, mode, channel, provider, provider_identity, provider_number_id, rate_per_second,
         credentials, credentials_fingerprint, credentials_updated_at, webhook_secret, webhook_verify_token, version, created_at, updated_at)
       VALUES ($1, $2, 'wa', 'whatsapp', 'test', 'whatsapp', 'whatsapp_cloud', $3, $3, 80, ''::bytea, '', now(), $4, $5, 1, now(), now())`,
      [
        uuidText(id),
        uuidText(tenantId),
        endpointId,
        seal(CREDENTIALS_KEY, APP_SECRET, endpointId),
        seal(CREDENTIALS_KEY, VERIFY_TOKEN, endpointId),
      ],
    );
    return { id, endpointId };
  }

  async setAppSecret(number: { id: Buffer; endpointId: string }, secret: string): Promise<void> {
    await this.sql.query('UPDATE api.number SET webhook_secret = $2, version = version + 1 WHERE id = $1', [
      uuidText(number.id),
      seal(CREDENTIALS_KEY, secret, number.endpointId),
    ]);
  }

  async campaign(total: number, { dueAt = Date.now() - 1_000 }: { dueAt?: number } = {}): Promise<Campaign> {
    const tenantId = newUuid(Date.now());
    const scheduleId = newUuid(Date.now());
    const audienceId = newUuid(Date.now());
    const run = runId(bucketOf(dueAt), scheduleId, 'once');
    const hash = (position: number) => createHmac('sha256', scheduleId).update(String(position)).digest().subarray(0, 8);
    await this.sql.query(
      `INSERT INTO api.content (schedule_id, revision, tenant_id, audience_id, content, category, mode, labels, correlation_id)
       VALUES ($1, 1, $2, $3, '{}', 'marketing', 'test', '{}', 'cor_test')`,
      [uuidText(scheduleId), uuidText(tenantId), uuidText(audienceId)],
    );
    for (let from = 0; from < total; from += CHUNK_SIZE) {
      const positions = Array.from({ length: Math.min(CHUNK_SIZE, total - from) }, (_, index) => from + index);
      const recipients = positions.map((position) => ({
        to: `+4915123${String(position).padStart(6, '0')}`,
        ref: `customer-${position}`,
        timeZone: null,
        parameters: {},
      }));
      await this.sql.query(
        'INSERT INTO api.audience_chunk (audience_id, chunk, count, hashes, body) VALUES ($1, $2, $3, $4, $5)',
        [
          uuidText(audienceId),
          from / CHUNK_SIZE,
          positions.length,
          Buffer.concat(positions.map(hash)),
          sealChunk([], recipients),
        ],
      );
    }
    return {
      tenantId,
      scheduleId,
      runId: run,
      numberId: newUuid(Date.now()),
      total,
      dueAt,
      occurrence: (position) => occurrenceId(run, hash(position)),
    };
  }

  /** The events as records of one partition, at the offsets that follow its last ones. */
  batch(topic: string, partition: number, told: Told[], at = Date.now()): ReadBatch {
    const name = `${topic}/${partition}`;
    let offset = this.offsets.get(name) ?? 0n;
    const records = told.map((one) => ({
      offset: offset++,
      timestampMs: at,
      item: readRecord(
        this.codec,
        TOKEN_KEY,
        { value: this.codec.encode(one.name, one.event as never), headers: {} },
        () => undefined,
      ),
    }));
    this.offsets.set(name, offset);
    return { topic, partition, records };
  }

  async messages(run: Campaign): Promise<Array<Record<string, unknown>>> {
    const { rows } = await this.sql.query('SELECT * FROM receipts.message_public WHERE run_id = $1 ORDER BY occurrence_id', [
      run.runId,
    ]);
    return rows as Array<Record<string, unknown>>;
  }

  /** By status, or status/reason where there is one. */
  async counts(run: Campaign): Promise<Record<string, number>> {
    const { rows } = await this.sql.query<{ status: string; reason: string; count: number }>(
      'SELECT status, reason, count FROM receipts.run_count WHERE run_id = $1 AND count <> 0 ORDER BY status, reason',
      [run.runId],
    );
    return Object.fromEntries(rows.map(({ status, reason, count }) => [reason === '' ? status : `${status}/${reason}`, count]));
  }

  /** What the rows themselves add up to: the counters must say the same (ranges aside). */
  async recount(run: Campaign): Promise<Record<string, number>> {
    const { rows } = await this.sql.query<{ status: string; reason: string | null; count: number }>(
      `SELECT status, reason, count(*)::int AS count FROM receipts.message_public WHERE run_id = $1 AND position IS NOT NULL
       GROUP BY status, reason ORDER BY status, reason`,
      [run.runId],
    );
    return Object.fromEntries(rows.map(({ status, reason, count }) => [reason === null ? status : `${status}/${reason}`, count]));
  }

  /** What the outbox holds, in order; it is emptied. */
  async takeOutbox(): Promise<Told[]> {
    const { rows } = await this.sql.query<{ value: Buffer }>(
      'WITH gone AS (DELETE FROM receipts.outbox RETURNING id, value) SELECT value FROM gone ORDER BY id',
    );
    return rows.map(({ value }) => this.codec.decode(value) as Told);
  }
}

export function tokenOf(campaign: Campaign, position: number, attempt = 1): string {
  return attemptToken(TOKEN_KEY, campaign.occurrence(position), attempt);
}

function about(campaign: Campaign, position: number, step: number, at: number) {
  return {
    eventId: derivedEventId('test', randomBytes(8)),
    at,
    occurrenceId: campaign.occurrence(position),
    scheduleId: campaign.scheduleId,
    tenantId: campaign.tenantId,
    revision: 1,
    position,
    step,
    dueAt: campaign.dueAt,
  };
}

type Options = { step?: number; attempt?: number; at?: number };

/** What a sender tells. */
export const tells = {
  submitted(
    campaign: Campaign,
    position: number,
    { step = 2, attempt = 1, at = campaign.dueAt + 500, wamid = null }: Options & { wamid?: string | null } = {},
  ): Told {
    return {
      name: 'MessageSubmitted',
      event: {
        ...about(campaign, position, step, at),
        attempt,
        providerMessageId: wamid,
        providerStatus: 'accepted',
        calledAt: at - 20,
        submittedAt: at,
        waits: [{ reason: 'pace', ms: 12 }],
        by: 'answer',
        traceparent: null,
      },
    };
  },
  held(campaign: Campaign, position: number, reason = 'paused', { step = 0, at = campaign.dueAt + 100 }: Options = {}): Told {
    return {
      name: 'MessageHeld',
      event: { ...about(campaign, position, step, at), reason, since: at, until: null, givesUpAt: at + 1_000_000 },
    };
  },
  retry(campaign: Campaign, position: number, { step = 2, attempt = 1, at = campaign.dueAt + 400 }: Options = {}): Told {
    return {
      name: 'SendRetryPlanned',
      event: {
        ...about(campaign, position, step, at),
        attempt,
        code: 'provider_unavailable',
        providerCode: '131016',
        text: null,
        nextAttemptAt: at + 120_000,
        traceparent: null,
      },
    };
  },
  failed(campaign: Campaign, position: number, { step = 2, attempt = 1, at = campaign.dueAt + 600 }: Options = {}): Told {
    return {
      name: 'MessageFailed',
      event: {
        ...about(campaign, position, step, at),
        attempt,
        code: 'template_parameters',
        providerCode: '132000',
        text: 'parameters',
        reachedProvider: true,
        traceparent: null,
      },
    };
  },
  refused(
    campaign: Campaign,
    position: number,
    status: 'refused' | 'cancelled' | 'expired' = 'cancelled',
    { step = 1, at = campaign.dueAt + 200 }: Options = {},
  ): Told {
    return {
      name: 'MessageRefused',
      event: { ...about(campaign, position, step, at), status, reason: status, afterUncertain: false, traceparent: null },
    };
  },
  uncertain(campaign: Campaign, position: number, { step = 2, attempt = 1, at = campaign.dueAt + 700 }: Options = {}): Told {
    return {
      name: 'OutcomeUncertain',
      event: {
        ...about(campaign, position, step, at),
        attempt,
        reason: 'deadline',
        since: at,
        until: at + 900_000,
        traceparent: null,
      },
    };
  },
  unconfirmed(
    campaign: Campaign,
    position: number,
    { step = 3, attempt = 1, at = campaign.dueAt + 900_700 }: Options = {},
  ): Told {
    return { name: 'OutcomeUnconfirmed', event: { ...about(campaign, position, step, at), attempt } };
  },
};

/** What a scheduler tells. */
export const plans = {
  planned(
    campaign: Campaign,
    { revision = 1, labels = { campaign: 'summer' } }: { revision?: number; labels?: Record<string, string> } = {},
  ): Told {
    return {
      name: 'RunPlanned',
      event: {
        eventId: derivedEventId('test', randomBytes(8)),
        at: campaign.dueAt - 1_000,
        runId: campaign.runId,
        scheduleId: campaign.scheduleId,
        tenantId: campaign.tenantId,
        externalId: null,
        numberId: campaign.numberId,
        slot: 'once',
        revision,
        total: campaign.total,
        dueAt: campaign.dueAt,
        validUntil: null,
        mode: 'test',
        channel: 'whatsapp',
        labels,
        correlationId: 'cor_test',
        traceparent: null,
      },
    };
  },
  range(
    campaign: Campaign,
    from: number,
    until: number,
    {
      status = 'cancelled',
      revision = 1,
      count = until - from,
      at = campaign.dueAt + 300,
    }: { status?: 'cancelled' | 'expired' | 'refused'; revision?: number; count?: number; at?: number } = {},
  ): Told {
    return {
      name: 'RecipientsRefused',
      event: {
        eventId: derivedEventId('test', randomBytes(8)),
        at,
        runId: campaign.runId,
        scheduleId: campaign.scheduleId,
        tenantId: campaign.tenantId,
        revision,
        fromPosition: from,
        untilPosition: until,
        count,
        status,
        reason: status,
      },
    };
  },
  held(campaign: Campaign, since = campaign.dueAt + 50): Told {
    return {
      name: 'RunHeld',
      event: {
        eventId: derivedEventId('test', randomBytes(8)),
        at: since,
        runId: campaign.runId,
        scheduleId: campaign.scheduleId,
        tenantId: campaign.tenantId,
        reason: 'template',
        since,
        detail: 'the first ten failed for their parameters',
      },
    };
  },
  resumed(campaign: Campaign, at = campaign.dueAt + 5_000): Told {
    return {
      name: 'ScheduleResumed',
      event: {
        eventId: derivedEventId('test', randomBytes(8)),
        at,
        tenantId: formatId('ten', campaign.tenantId),
        scheduleId: formatId('sch', campaign.scheduleId),
        externalId: null,
        version: 2,
        revision: 1,
        actor: 'key_test',
        reason: null,
        correlationId: 'cor_test',
        traceparent: null,
      },
    };
  },
};

export interface StatusLine {
  wamid?: string | null;
  token?: string | null;
  status: string;
  /** Seconds. */
  at: number;
  code?: number;
}

/** A body as Meta posts it. */
export function webhookBody(lines: StatusLine[]): Buffer {
  const statuses = lines.map(({ wamid, token, status, at, code }) => ({
    ...(wamid ? { id: wamid } : {}),
    status,
    timestamp: String(at),
    recipient_id: '12025550143',
    ...(token ? { biz_opaque_callback_data: token } : {}),
    ...(code === undefined
      ? {}
      : { errors: [{ code, title: 'failed', message: 'failed', error_data: { details: `code ${code}` } }] }),
  }));
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15005550199', phone_number_id: '700600500400301' },
    statuses,
  };
  return Buffer.from(
    JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '900100200300401', changes: [{ field: 'messages', value }] }],
    }),
  );
}

export function webhook(lines: StatusLine[], at = Date.now()): Told {
  return {
    name: 'WebhookReceived',
    event: {
      eventId: derivedEventId('test', randomBytes(8)),
      at,
      endpointId: 'num_test',
      provider: 'whatsapp_cloud',
      body: webhookBody(lines),
    },
  };
}

export function signature(body: Buffer, secret = APP_SECRET): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

export function recordsOf(prefix: string, topic: TopicName, told: Told[], key: Buffer, codec: Codec) {
  return {
    topic: topicName(prefix, topic),
    partition: partitionFor(key, PARTITIONS),
    records: told.map(({ name, event }) => ({ key, value: codec.encode(name, event as never) })),
  };
}
