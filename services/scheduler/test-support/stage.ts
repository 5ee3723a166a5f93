import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { Codec } from '#contracts/codec';
import type { AnyEvent, ExecutionDue, ScheduleCancelled, ScheduleRequested } from '#contracts/events';
import { CHUNK_SIZE, bucketOf, formatId, newUuid, runId, uuidText } from '#contracts/ids';
import { sealChunk } from '#contracts/audience-chunk';
import { topicName } from '#contracts/topics';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openProducer } from '#runtime/kafka/open-producer';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import type { BatchConsumer, BatchProducer, InRecord } from '#runtime/kafka/port';
import { silentLog } from '#runtime/log';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import {
  createTestDatabase,
  createTopics,
  serverAddress,
  uniquePrefix,
  type TestDatabase,
  type TestTopics,
} from '../../../test-support/isolation';
import { encodeDraft } from '../src/kafka/outbox-drafts';
import { PlanSchedules } from '../src/plan-schedules';
import { ReleaseDue } from '../src/release-due';
import type { PickLimits } from '../src/postgres/slice-rows';

export interface Number {
  id: Buffer;
  identity: string;
}

export interface Campaign {
  event: ScheduleRequested;
  scheduleId: Buffer;
  runId: Buffer;
  number: Number;
  recipients: number;
}

export interface CampaignOptions {
  number?: Number;
  recipients?: number;
  dueAt?: number;
  validUntil?: number | null;
  priority?: number;
  traceparent?: string | null;
}

export const LIMITS: PickLimits = {
  leaseMs: 5_000,
  // Far more than the 5 s of a service: a busy machine must not make a test fail.
  creditAgeMs: 60_000,
  wake: 2_000,
  numbers: 200,
  runs: 64,
  records: 2_000,
  lookAheadMs: 1_500,
};

const tenantId = newUuid(Date.now());

/** A database, topics and the steps of schedulers over them; other services' rows are written by their own functions. */
export class Stage {
  readonly codec = new Codec();
  readonly stops: Array<() => Promise<unknown>> = [];

  private constructor(
    readonly test: TestDatabase,
    readonly sql: Client,
    readonly database: PostgresDatabase,
    readonly prefix: string,
    readonly topics: TestTopics,
    readonly producer: BatchProducer,
    readonly partitions: number,
  ) {}

  static async open(): Promise<Stage> {
    const test = await createTestDatabase();
    const prefix = uniquePrefix();
    const topics = await createTopics(prefix);
    const sql = new Client({ connectionString: test.adminUrl });
    sql.on('error', () => undefined);
    await sql.connect();
    const database = await openDatabase({ url: test.urlFor('punctual_scheduler'), name: 'scheduler-test', max: 8 });
    const brokers = serverAddress('KAFKA_BROKERS').split(',');
    const producer = openProducer({ brokers, clientId: 'scheduler-test' });
    await producer.connect();
    const admin = await openAdmin({ brokers, clientId: 'scheduler-test' });
    const partitions = await admin.partitionCount(topicName(prefix, 'executions'));
    await admin.close();
    await sql.query(`INSERT INTO api.tenant (id, name, mode, created_at) VALUES ($1, 'Test', 'test', now())`, [
      uuidText(tenantId),
    ]);
    return new Stage(test, sql, database, prefix, topics, producer, partitions);
  }

  async close(): Promise<void> {
    for (const stop of this.stops.reverse()) await stop();
    await this.producer.close();
    await this.database.close();
    await this.sql.end();
    await this.topics.drop();
    await this.test.drop();
  }

  planner(checkAfterMs = 60_000): PlanSchedules {
    return new PlanSchedules(this.database, this.codec, { checkAfterMs });
  }

  releaser(
    instanceId = `scheduler-${randomBytes(3).toString('hex')}`,
    limits: Partial<PickLimits> = {},
    producer = this.producer,
  ): ReleaseDue {
    return new ReleaseDue(
      this.database,
      producer,
      this.codec,
      {
        instanceId,
        executionsTopic: topicName(this.prefix, 'executions'),
        partitions: this.partitions,
        checkAfterMs: 60_000,
        limits: { ...LIMITS, ...limits },
      },
      silentLog,
    );
  }

  number(): Number {
    return { id: newUuid(Date.now()), identity: `whatsapp_cloud:${randomBytes(7).readUIntBE(0, 6)}` };
  }

  /** A schedule as the api leaves it: its audience, its gate and its event. */
  async campaign(options: CampaignOptions = {}): Promise<Campaign> {
    const {
      recipients = 1,
      dueAt = Date.now() - 1,
      validUntil = null,
      priority = 5,
      traceparent = null,
      number = this.number(),
    } = options;
    const scheduleId = newUuid(Date.now());
    const run = runId(bucketOf(Date.now()), scheduleId, 'once');
    const audienceId = await this.audience(recipients);
    const event: ScheduleRequested = {
      eventId: formatId('evt', randomBytes(16)),
      at: Date.now(),
      tenantId: formatId('ten', tenantId),
      scheduleId: formatId('sch', scheduleId),
      externalId: null,
      version: 1,
      revision: 1,
      mode: 'test',
      channel: 'whatsapp',
      numberId: formatId('num', number.id),
      providerIdentity: number.identity,
      category: 'marketing',
      priority,
      labels: { campaign: 'test' },
      onUncertain: 'leave',
      audienceId: formatId('aud', audienceId),
      chunkCount: Math.ceil(recipients / CHUNK_SIZE),
      recipients,
      slots: [
        {
          slot: 'once',
          runId: formatId('run', run),
          timeZone: 'Europe/Berlin',
          local: '2027-01-01T09:00:00',
          rule: 'exact',
          tzdb: '2025c',
          dueAt,
          validUntil,
        },
      ],
      actor: 'test',
      correlationId: 'test',
      traceparent,
    };
    await this.changeGate(scheduleId, 'open', 1, {
      tenantId: uuidText(tenantId),
      numberId: uuidText(number.id),
      mode: 'test',
      channel: 'whatsapp',
      category: 'marketing',
      onUncertain: 'leave',
      retryDelaysMs: [120_000],
      runId: run.toString('hex'),
      holdGiveUpMs: 604_800_000,
    });
    return { event, scheduleId, runId: run, number, recipients };
  }

  /** One after the other: the connection of the stage takes one statement at a time. */
  async campaigns(options: readonly CampaignOptions[]): Promise<Campaign[]> {
    const campaigns: Campaign[] = [];
    for (const each of options) campaigns.push(await this.campaign(each));
    return campaigns;
  }

  /** Sealed chunks whose hashes are random. */
  async audience(recipients: number): Promise<Buffer> {
    const id = newUuid(Date.now());
    const counts: number[] = [];
    for (let left = recipients; left > 0; left -= CHUNK_SIZE) counts.push(Math.min(left, CHUNK_SIZE));
    await this.sql.query('SELECT api.store_inline_audience($1, $2, now(), $3, $4, $5)', [
      uuidText(tenantId),
      {
        id: uuidText(id),
        accepted: recipients,
        rejected: 0,
        duplicates: 0,
        columns: [],
        missing: {},
        setHash: randomBytes(32).toString('hex'),
      },
      counts,
      counts.map((count) => randomBytes(count * 8)),
      counts.map(() => sealChunk([], [{ to: '+4915123456789', ref: null, timeZone: null, parameters: {} }])),
    ]);
    return id;
  }

  async changeGate(scheduleId: Buffer, action: string, revision: number, details: Record<string, unknown> = {}): Promise<void> {
    await this.sql.query('SELECT sender.change_gate($1, $2, $3, $4)', [uuidText(scheduleId), action, revision, details]);
  }

  async reportCredit(numbers: readonly Number[], credit: number, sender = 'sender-1'): Promise<void> {
    await this.sql.query('SELECT scheduler.report_credit($1, $2, $3)', [
      sender,
      numbers.map(({ id }) => uuidText(id)),
      numbers.map(() => credit),
    ]);
  }

  async audienceFields(recipients: number): Promise<Pick<ScheduleRequested, 'audienceId' | 'chunkCount' | 'recipients'>> {
    const audienceId = formatId('aud', await this.audience(recipients));
    return { audienceId, chunkCount: Math.ceil(recipients / CHUNK_SIZE), recipients };
  }

  /** A pause, resume or cancel as the api would tell it. */
  changeOf({ event }: Campaign, version: number): ScheduleCancelled {
    const { tenantId: tenant, scheduleId, externalId, correlationId, revision, actor } = event;
    const eventId = formatId('evt', randomBytes(16));
    return {
      eventId,
      at: Date.now(),
      tenantId: tenant,
      scheduleId,
      externalId,
      version,
      revision,
      actor,
      reason: null,
      correlationId,
      traceparent: null,
    };
  }

  /** The batch as it would come from punctual.schedules. */
  batch(...events: AnyEvent[]): { records: InRecord[] } {
    return {
      records: events.map(({ name, event }, index) => ({
        offset: BigInt(index),
        key: Buffer.from('schedule'),
        value: this.codec.encode(name, event as never),
        headers: {},
        timestampMs: Date.now(),
      })),
    };
  }

  async plan(...campaigns: Campaign[]): Promise<void> {
    await this.planner().planBatch(this.batch(...campaigns.map(({ event }) => ({ name: 'ScheduleRequested' as const, event }))));
  }

  /** Reads punctual.executions from its beginning, as a sender would. */
  async executions(): Promise<Executions> {
    const executions = new Executions(this.codec, this.prefix);
    await executions.start();
    this.stops.push(() => executions.stop());
    return executions;
  }

  async outbox(): Promise<AnyEvent[]> {
    const { rows } = await this.sql.query<{ draft: never }>('SELECT draft FROM scheduler.outbox ORDER BY id');
    return rows.map(({ draft }) => this.codec.decode(encodeDraft(this.codec, draft)));
  }

  async run(
    campaign: Campaign,
  ): Promise<{ status: string; released_position: number; revision: number; total: number } | undefined> {
    const { rows } = await this.sql.query('SELECT * FROM scheduler.run_public WHERE run_id = $1', [campaign.runId]);
    return rows[0];
  }
}

export class Executions {
  readonly all: Array<{ execution: ExecutionDue; partition: number; key: Buffer; traceparent: string | undefined }> = [];
  private readonly consumer: BatchConsumer;

  constructor(
    private readonly codec: Codec,
    private readonly prefix: string,
  ) {
    this.consumer = openBatchConsumer({
      brokers: serverAddress('KAFKA_BROKERS').split(','),
      clientId: 'executions-test',
      groupId: `${prefix}executions-test`,
    });
  }

  async start(): Promise<void> {
    await this.consumer.run([topicName(this.prefix, 'executions')], async ({ records, partition }) => {
      for (const { value, key, headers } of records) {
        const { name, event } = this.codec.decode(value);
        if (name !== 'ExecutionDue') throw new Error(`${name} on the executions topic`);
        this.all.push({ execution: event, partition, key: key!, traceparent: headers.traceparent });
      }
    });
  }

  of({ scheduleId }: Campaign): ExecutionDue[] {
    return this.all.map(({ execution }) => execution).filter((execution) => execution.scheduleId.equals(scheduleId));
  }

  stop(): Promise<void> {
    return this.consumer.stop();
  }
}
