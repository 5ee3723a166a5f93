import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Codec } from '#contracts/codec';
import { topicName, topicSpecs, type TopicName } from '#contracts/topics';
import { systemClock } from '#runtime/clock';
import { consumerStalled } from '#runtime/kafka/consumer-stalled';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer } from '#runtime/kafka/port';
import { Lifecycle } from '#runtime/lifecycle';
import { telemetryPart } from '#runtime/loaded-telemetry';
import type { Log } from '#runtime/log';
import { counter } from '#runtime/metrics';
import { OutboxRelay } from '#runtime/outbox/outbox-relay';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { waitForSchema } from '#runtime/postgres/wait-for-schema';
import { keyFrom } from '#runtime/sealed-secret';
import { AppModule } from './app.module';
import type { ReceiptsConfig } from './config';
import { createHttpServer } from './http/http-server';
import type { WebhookParts } from './http/webhook-routes';
import { WebhookIntake } from './intake/keep-webhook';
import { WebhookSecrets } from './intake/webhook-secrets';
import { WebhookSpool } from './intake/webhook-spool';
import { BatchReader, FACTS, strategyFor, WEBHOOKS } from './kafka/batch-controllers';
import { METRICS } from './metric-names';
import { Projection } from './projection/project-batches';
import { Projector } from './projection/projector';
import { RepeatStep } from '#runtime/repeat-step';
import { ToldRuns } from './tell-runs';
import { TidyParked } from './tidy-parked';

const SPOOL_BUSY_MS = 100;
const SPOOL_IDLE_MS = 1_000;
const TIDY_MS = 600_000;
/** How long the projection steps back for acknowledgements, before each transaction. */
const MOST_POLITE_MS = 250;
/** At a trickle facts are projected and told at most this often: each step costs the same for one as for fifty. */
const TRICKLE_MS = 250;

export interface Receipts {
  lifecycle: Lifecycle;
  /** Where it listens, once it has begun to start. */
  origin(): string;
}

/** Everything a receipts process consists of, in the order in which it starts. */
export function composeReceipts(config: ReceiptsConfig, log: Log): Receipts {
  const databaseUrl = config.DATABASE_URL.reveal();
  const kafka = { brokers: config.KAFKA_BROKERS, clientId: `receipts-${config.INSTANCE_ID}`, log };
  const topic = (name: TopicName) => topicName(config.TOPIC_PREFIX, name);
  const lifecycle = new Lifecycle({ log, drainDeadlineMs: config.DRAIN_DEADLINE_MS });
  const codec = new Codec();
  const producer = openProducer(kafka);
  const ignored = counter(METRICS.webhookItemsIgnored, 'Parts of webhooks that have no effect here, by kind');
  const partitions = new Map<string, number>();
  let app: NestFastifyApplication | undefined;
  let address = '';
  let database: PostgresDatabase;
  let webhooks: WebhookParts | null = null;
  let relay: OutboxRelay | undefined;
  let projection: Projection | undefined;
  let repeated: RepeatStep[] = [];
  let consumers: BatchConsumer[] = [];

  const projector = new Projector(
    async (batches) => {
      await webhooks?.intake.quiet(MOST_POLITE_MS);
      await projection!.project(batches);
      relay?.wake();
    },
    { restMs: TRICKLE_MS },
  );
  const reader = new BatchReader(codec, keyFrom(config.TOKEN_KEY), projector, (what, count) => ignored.add(count, { what }));

  lifecycle
    .add(telemetryPart())
    .add({
      name: 'http',
      start: async () => {
        app = await createHttpServer(AppModule.of(config.TOPIC_PREFIX, reader), lifecycle, () => webhooks);
        await app.listen(config.PORT, config.HOST);
        address = (await app.getUrl()).replace('[::1]', '127.0.0.1');
        log.info('listening', { address });
      },
      // Ends when open requests have their answers and the consumers their last batch.
      drain: () => app?.close(),
    })
    .add({
      name: 'postgres',
      start: async (signal) => {
        database = await openDatabase({
          url: databaseUrl,
          name: `receipts-${config.INSTANCE_ID}`,
          keepsIndexPlans: true,
          log,
          signal,
        });
        await waitForSchema(database, undefined, { log, signal });
      },
      stop: () => database?.close(),
    })
    .add({
      name: 'kafka',
      start: async (signal) => {
        const admin = await openAdmin({ ...kafka, signal });
        try {
          for (const [name, count] of await admin.ensureTopics(topicSpecs(config.TOPIC_PREFIX))) partitions.set(name, count);
        } finally {
          await admin.close();
        }
        await producer.connect();
      },
      stop: () => producer.close(),
    })
    .add({
      name: 'outbox',
      start: () => {
        relay = new OutboxRelay({
          database,
          databaseUrl,
          schema: 'receipts',
          producer,
          collectMs: TRICKLE_MS,
          topicName: (name) => topic(name as TopicName),
          log,
        });
        return relay.start();
      },
      stop: () => relay?.stop(),
    })
    .add({
      name: 'intake',
      start: () => {
        const intake = new WebhookIntake({
          codec,
          producer,
          spool: new WebhookSpool(database),
          clock: systemClock,
          log,
          topic: topic('webhooks'),
          partitions: partitions.get(topic('webhooks'))!,
        });
        webhooks = { intake, secrets: new WebhookSecrets(database, keyFrom(config.CREDENTIALS_KEY), systemClock, log) };
        const counts = { receipts: partitions.get(topic('receipts'))!, status: partitions.get(topic('status'))! };
        const options = { database, codec, clock: systemClock, partitions: counts, evidenceWindowMs: config.EVIDENCE_WINDOW_MS };
        projection = new Projection(options);
        const runs = new ToldRuns({ ...options, progressEveryMs: config.PROGRESS_EVERY_MS });
        const tidy = new TidyParked(database);
        // More is left when a step did all that it does at once.
        const telling = async (step: Promise<{ told: number; more: boolean }>) => {
          const { told, more } = await step;
          if (told > 0) relay?.wake();
          return more ? 0 : config.PROGRESS_EVERY_MS;
        };
        repeated = [
          new RepeatStep('spool', async () => ((await intake.relayOnce()) > 0 ? SPOOL_BUSY_MS : SPOOL_IDLE_MS), log),
          new RepeatStep('progress', () => telling(runs.tellProgressOnce()), log),
          new RepeatStep('evidence-ends', () => telling(runs.tellFinalOnce()), log),
          new RepeatStep('tidy', async () => ((await tidy.tidyOnce()) > 0 ? SPOOL_BUSY_MS : TIDY_MS), log),
        ];
        for (const step of repeated) step.start();
      },
      drain: async () => {
        await Promise.all(repeated.map((step) => step.stop()));
      },
    })
    .add({
      name: 'consumers',
      start: async () => {
        consumers = [WEBHOOKS, FACTS].map((group) => {
          const consumer = openBatchConsumer({
            ...kafka,
            groupId: `${config.TOPIC_PREFIX}receipts-${group === WEBHOOKS ? 'webhooks' : 'projector'}`,
            deadLetterProducer: producer,
            mostRecords: 1_000,
            onFatal: (error) => lifecycle.fail(error),
          });
          app!.connectMicroservice({ strategy: strategyFor(group as typeof WEBHOOKS, consumer) });
          return consumer;
        });
        await app!.startAllMicroservices();
      },
      notReady: () =>
        consumers.some(({ health }) => health.lastHeartbeatMs === 0) ? 'not a member of its groups yet' : undefined,
      notAlive: () => consumers.map(({ health }) => consumerStalled(health)).find((reason) => reason !== undefined),
    });
  return { lifecycle, origin: () => address };
}
