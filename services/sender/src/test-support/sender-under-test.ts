import { randomBytes, randomUUID } from 'node:crypto';
import { sealChunk, type Recipient } from '#contracts/audience-chunk';
import { Codec } from '#contracts/codec';
import type { MessageContent } from '#contracts/content';
import type { AnyEvent, EventName, Events } from '#contracts/events';
import { CHUNK_SIZE, bucketOf, formatId, occurrenceId, recipientHash, runId, uuidBytes } from '#contracts/ids';
import { partitionFor } from '#contracts/murmur2';
import { topicName } from '#contracts/topics';
import { loadConfig } from '#runtime/config';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer, BatchProducer } from '#runtime/kafka/port';
import { openLog } from '#runtime/log';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { statement } from '#runtime/postgres/sql-file';
import { seal } from '#runtime/sealed-secret';
import { waitUntil } from '#runtime/wait-until';
import { ordinaryRecipient } from '#simulator/ordinary-recipients';
import { startSimulator, type RunningSimulator } from '#simulator/start-simulator';
import {
  createTestDatabase,
  createTopics,
  serverAddress,
  uniquePrefix,
  type TestDatabase,
  type TestTopics,
} from '../../../../test-support/isolation';
import { senderConfig } from '../config';
import { LOG_FIELDS } from '../log-fields';
import { senderProcess, type SenderProcess } from '../sender-process';

const EXECUTIONS_PARTITIONS = 12;
const ID_KEY = randomBytes(32);
const CREDENTIALS_KEY = randomBytes(32);
const TOKEN_KEY = randomBytes(32);

const INSERT_TENANT = statement('t', `INSERT INTO api.tenant VALUES ($1, 'test', 'test', now())`);
const INSERT_NUMBER = statement(
  'n',
  `INSERT INTO api.number (id, tenant_id, name, kind, mode, channel, provider, provider_identity, provider_number_id, waba_id, app_id,
     rate_per_second, credentials, credentials_fingerprint, credentials_updated_at, version, created_at, updated_at)
   VALUES ($1, $2, $3, 'whatsapp', 'test', 'whatsapp', 'whatsapp_cloud', $4, $5, $6, $7, $8, $9, 'f', now(), 1, now(), now())`,
);
const INSERT_CONTENT = statement(
  'c',
  `INSERT INTO api.content (schedule_id, revision, tenant_id, audience_id, content, category, mode, labels, correlation_id)
   VALUES ($1, $2, $3, $4, $5, 'marketing', 'test', '{}', 'c')`,
);
const INSERT_AUDIENCE = statement(
  'a',
  `INSERT INTO api.audience (id, tenant_id, source, status, accepted, rejected, duplicates, chunk_count, columns, set_hash, created_at, touched_at)
   VALUES ($1, $2, 'inline', 'ready', $3, 0, 0, ($3::int + 499) / 500, '{name}', '\\x00', now(), now())`,
);
const INSERT_CHUNK = statement('k', `INSERT INTO api.audience_chunk VALUES ($1, $2, $3, $4, $5)`);
const CHANGE_GATE = statement('g', 'SELECT sender.change_gate($1, $2, $3, $4)');
const CREDIT = statement('cr', 'SELECT credit FROM scheduler.number_credit WHERE number_id = $1');
const COUNTS = statement('co', 'SELECT state, count(*)::int AS count FROM sender.claim WHERE schedule_id = $1 GROUP BY state');

export interface TestNumber {
  numberId: string;
  providerNumberId: string;
  providerIdentity: string;
  partition: number;
  ratePerSecond: number;
}

export interface TestRun {
  scheduleId: string;
  tenantId: string;
  runId: Buffer;
  number: TestNumber;
  recipients: Recipient[];
  occurrenceIds: Buffer[];
}

type SimulatorConfiguration = NonNullable<Parameters<typeof startSimulator>[0]>['configuration'];

export const TEXT: MessageContent = { text: 'Hello {{name}}' };

/** Real servers, the simulator, and as many senders as a test starts: with the api's and the scheduler's side of them. */
export class SenderUnderTest {
  readonly senders: SenderProcess[] = [];
  readonly events: AnyEvent[] = [];
  readonly codec = new Codec();
  private readonly tenantId = randomUUID();
  private consumer!: BatchConsumer;
  private producer!: BatchProducer;
  private numbers = 0;

  private constructor(
    readonly prefix: string,
    readonly database: TestDatabase,
    readonly admin: PostgresDatabase,
    private readonly topics: TestTopics,
    readonly simulator: RunningSimulator,
  ) {}

  static async open(configuration: SimulatorConfiguration = {}, external?: RunningSimulator): Promise<SenderUnderTest> {
    const prefix = uniquePrefix();
    const [database, topics, simulator] = await Promise.all([
      createTestDatabase(),
      createTopics(prefix),
      external ?? startSimulator({ configuration: { latency: { kind: 'fixed', ms: 5 }, ...configuration } }),
    ]);
    const admin = await openDatabase({ url: database.adminUrl, name: 'test' });
    const under = new SenderUnderTest(prefix, database, admin, topics, simulator);
    await admin.rows(INSERT_TENANT, [under.tenantId]);
    const brokers = serverAddress('KAFKA_BROKERS').split(',');
    under.producer = openProducer({ brokers, clientId: 'test' });
    await under.producer.connect();
    under.consumer = openBatchConsumer({ brokers, clientId: 'test', groupId: `${prefix}test` });
    await under.consumer.run([topicName(prefix, 'deliveries')], async ({ records }) => {
      for (const { value } of records) under.events.push(under.codec.decode(value));
    });
    return under;
  }

  /** The environment of a sender process. */
  env(settings: Record<string, string> = {}): Record<string, string> {
    return {
      KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
      REDIS_URL: serverAddress('REDIS_URL'),
      DATABASE_URL: this.database.urlFor('punctual_sender'),
      TOPIC_PREFIX: this.prefix,
      REDIS_PREFIX: this.prefix,
      PORT: '0',
      TOKEN_KEY: TOKEN_KEY.toString('base64'),
      CREDENTIALS_KEY: CREDENTIALS_KEY.toString('base64'),
      WHATSAPP_TEST_URL: this.simulator.url,
      PROVIDER_DEADLINE_MS: '2000',
      DEADLINE_GRACE_MS: '1000',
      EVIDENCE_WINDOW_MS: '5000',
      RESEND_AFTER_MS: '3000',
      HEALTH_PROBE_MS: '300',
      ...settings,
    };
  }

  async startSender(settings: Record<string, string> = {}): Promise<SenderProcess> {
    const level = (process.env.SENDER_TEST_LOG ?? 'silent') as 'silent';
    const sender = senderProcess(
      loadConfig(senderConfig, this.env(settings)),
      openLog({ service: 'sender', level, fields: LOG_FIELDS }),
      () => undefined,
    );
    this.senders.push(sender);
    await sender.lifecycle.start();
    return sender;
  }

  async addNumber(
    ratePerSecond: number,
    { partition, wabaId = null, enforced = true }: { partition?: number; wabaId?: string | null; enforced?: boolean } = {},
  ): Promise<TestNumber> {
    let providerNumberId: string;
    let of: number;
    do {
      providerNumberId = String(700_600_500_400_000 + this.numbers++);
      of = partitionFor(`whatsapp_cloud:${providerNumberId}`, EXECUTIONS_PARTITIONS);
    } while (partition !== undefined && of !== partition);
    const numberId = randomUUID();
    const providerIdentity = `whatsapp_cloud:${providerNumberId}`;
    const credentials = seal(
      CREDENTIALS_KEY,
      JSON.stringify({ accessToken: 'test-token' }),
      formatId('num', uuidBytes(numberId)),
    );
    const name = `n${this.numbers}`;
    await this.admin.rows(INSERT_NUMBER, [
      numberId,
      this.tenantId,
      name,
      providerIdentity,
      providerNumberId,
      wabaId,
      null,
      ratePerSecond,
      credentials,
    ]);
    await this.simulator.control.configure({
      numbers: [{ phoneNumberId: providerNumberId, ratePerSecond: enforced ? ratePerSecond : null }],
    });
    return { numberId, providerNumberId, providerIdentity, partition: of, ratePerSecond };
  }

  /** A schedule as the api leaves it: content, sealed audience, gate row. `to` are E.164 numbers, or how many ordinary ones. */
  async addRun(
    number: TestNumber,
    to: number | string[],
    options: { content?: MessageContent; details?: object; withoutContent?: boolean } = {},
  ): Promise<TestRun> {
    const scheduleId = randomUUID();
    const audienceId = randomUUID();
    const run = runId(bucketOf(Date.now()), uuidBytes(scheduleId), 'once');
    const addresses = typeof to === 'number' ? Array.from({ length: to }, (_, i) => ordinaryRecipient(i)) : to;
    const recipients = addresses.map((address, i): Recipient => ({
      to: address,
      ref: null,
      timeZone: null,
      parameters: { name: `n${i}` },
    }));
    const hashes = recipients.map((recipient) => recipientHash(ID_KEY, recipient.to));
    await this.admin.rows(INSERT_AUDIENCE, [audienceId, this.tenantId, recipients.length]);
    for (let chunk = 0; chunk * CHUNK_SIZE < recipients.length; chunk++) {
      const from = chunk * CHUNK_SIZE;
      const part = recipients.slice(from, from + CHUNK_SIZE);
      await this.admin.rows(INSERT_CHUNK, [
        audienceId,
        chunk,
        part.length,
        Buffer.concat(hashes.slice(from, from + CHUNK_SIZE)),
        sealChunk(['name'], part),
      ]);
    }
    if (!options.withoutContent) {
      await this.admin.rows(INSERT_CONTENT, [scheduleId, 1, this.tenantId, audienceId, JSON.stringify(options.content ?? TEXT)]);
    }
    const details = {
      tenantId: this.tenantId,
      numberId: number.numberId,
      mode: 'test',
      channel: 'whatsapp',
      category: 'marketing',
      onUncertain: 'leave',
      retryDelaysMs: [300, 300, 300],
      runId: run.toString('hex'),
      holdGiveUpMs: 604_800_000,
      ...options.details,
    };
    await this.admin.rows(CHANGE_GATE, [scheduleId, 'open', 1, JSON.stringify(details)]);
    const occurrenceIds = hashes.map((hash) => occurrenceId(run, hash));
    return { scheduleId, tenantId: this.tenantId, runId: run, number, recipients, occurrenceIds };
  }

  async changeGate(run: TestRun, action: string, details: object = {}): Promise<void> {
    await this.admin.rows(CHANGE_GATE, [run.scheduleId, action, 1, JSON.stringify(details)]);
  }

  /** Releases messages of the run as the scheduler would, without minding credit. */
  async release(
    run: TestRun,
    {
      from = 0,
      until = run.occurrenceIds.length,
      priority = 5,
      dueAt = Date.now(),
      traceparent,
    }: { from?: number; until?: number; priority?: number; dueAt?: number; traceparent?: string } = {},
  ): Promise<void> {
    const records = run.occurrenceIds.slice(from, until).map((id, i) => ({
      key: id,
      value: this.codec.encode('ExecutionDue', {
        occurrenceId: id,
        scheduleId: uuidBytes(run.scheduleId),
        revision: 1,
        numberId: uuidBytes(run.number.numberId),
        dueAt,
        releasedAt: Date.now(),
        validUntil: null,
        priority,
        position: from + i,
      }),
      ...(traceparent ? { headers: { traceparent } } : {}),
    }));
    await this.producer.send(topicName(this.prefix, 'executions'), run.number.partition, records);
  }

  async produce(topic: 'executions' | 'receipts', partition: number, key: Buffer, value: Buffer): Promise<void> {
    await this.producer.send(topicName(this.prefix, topic), partition, [{ key, value }]);
  }

  eventsOf<N extends EventName>(run: TestRun, name: N): Array<Events[N]> {
    const schedule = uuidBytes(run.scheduleId);
    const unique = new Map<string, Events[N]>();
    for (const each of this.events) {
      if (each.name !== name || !('scheduleId' in each.event) || !Buffer.from(each.event.scheduleId as Buffer).equals(schedule))
        continue;
      unique.set((each.event as { eventId?: string }).eventId ?? String(unique.size), each.event as Events[N]);
    }
    return [...unique.values()];
  }

  async waitForEvents<N extends EventName>(run: TestRun, name: N, count: number, deadlineMs = 20_000): Promise<Array<Events[N]>> {
    await waitUntil(`${count} ${name}, not ${this.eventsOf(run, name).length}`, () => this.eventsOf(run, name).length >= count, {
      deadlineMs,
    }).catch(() => {
      throw new Error(`waited ${deadlineMs} ms in vain for ${count} ${name}; there are ${this.eventsOf(run, name).length}`);
    });
    return this.eventsOf(run, name);
  }

  async creditOf(number: TestNumber): Promise<number | null> {
    return (await this.admin.rows<{ credit: number }>(CREDIT, [number.numberId]))[0]?.credit ?? null;
  }

  /** Claims of the run by state. */
  async counts(run: TestRun): Promise<Record<string, number>> {
    const rows = await this.admin.rows<{ state: string; count: number }>(COUNTS, [run.scheduleId]);
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  async close(): Promise<void> {
    await Promise.all(this.senders.map(({ lifecycle }) => lifecycle.stop()));
    await this.consumer.stop();
    await this.producer.close();
    await this.simulator.stop();
    await this.admin.close();
    await this.topics.drop();
    await this.database.drop();
  }
}
