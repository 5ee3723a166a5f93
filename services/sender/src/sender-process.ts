import 'reflect-metadata';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { topicName, topicSpecs } from '#contracts/topics';
import { healthServer } from '#runtime/http/health';
import { KafkaBatchStrategy } from '#runtime/kafka/nest-strategy';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer, BatchProducer } from '#runtime/kafka/port';
import { Lifecycle } from '#runtime/lifecycle';
import { telemetryPart } from '#runtime/loaded-telemetry';
import type { Log } from '#runtime/log';
import { OutboxRelay } from '#runtime/outbox/outbox-relay';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { waitForSchema } from '#runtime/postgres/wait-for-schema';
import { AppModule } from './app.module';
import type { SenderConfig } from './config';
import { warmGate } from './postgres/warm-gate';
import { Sender } from './sender';

/** Connections for the gate, results and the rest at once; more only queue at the server. */
const POOL_SIZE = 12;
/** As many as are in use at once at some hundred messages a second. */
const WARM_CONNECTIONS = 4;
/** A consumer that has not fetched for this long is stuck, whatever it says. */
const SILENT_MS = 60_000;

export interface SenderProcess {
  lifecycle: Lifecycle;
  /** Once it has started. */
  readonly sender: Sender;
  readonly port: number;
}

/** Everything of one sender process, in the order in which it starts. */
export function senderProcess(config: SenderConfig, log: Log, exit?: (code: number) => void): SenderProcess {
  const lifecycle = new Lifecycle({ log, drainDeadlineMs: config.DRAIN_DEADLINE_MS, exit });
  const kafka = { brokers: config.KAFKA_BROKERS, clientId: config.INSTANCE_ID, log };
  let database: PostgresDatabase;
  let producer: BatchProducer;
  let partitionCounts: ReadonlyMap<string, number>;
  let app: INestMicroservice | undefined;
  let evidence: BatchConsumer | undefined;
  let sender: Sender;
  let relay: OutboxRelay;
  const http = healthServer(lifecycle, { host: config.HOST, port: config.PORT });

  lifecycle
    .add(telemetryPart())
    .add(http)
    .add({
      name: 'postgres',
      start: async (signal) => {
        const url = config.DATABASE_URL.reveal();
        database = await openDatabase({ url, name: 'sender', max: POOL_SIZE, min: WARM_CONNECTIONS, log, signal });
        await waitForSchema(database, undefined, { log, signal });
        await warmGate(database, WARM_CONNECTIONS).catch((error: unknown) => log.warn('the gate could not be warmed', { error }));
      },
      stop: () => database?.close(),
    })
    .add({
      name: 'kafka',
      start: async (signal) => {
        const admin = await openAdmin({ ...kafka, signal });
        partitionCounts = await admin.ensureTopics(topicSpecs(config.TOPIC_PREFIX));
        await admin.close();
        producer = openProducer(kafka);
        await producer.connect();
      },
      stop: () => producer?.close(),
    })
    .add({
      name: 'sender',
      start: async (signal) => {
        evidence = openBatchConsumer({
          ...kafka,
          groupId: `${config.TOPIC_PREFIX}sender-evidence`,
          // Evidence is not urgent: the sweeper looks at it before any further attempt.
          minBytes: 256 * 1024,
          maxWaitMs: 400,
          deadLetterProducer: producer,
          onFatal: (error) => lifecycle.fail(error),
        });
        const module = AppModule.register({
          config,
          log,
          database,
          producer,
          partitionCounts,
          onFatal: (error) => lifecycle.fail(error),
          signal,
        });
        app = await NestFactory.createMicroservice<MicroserviceOptions>(module, {
          strategy: new KafkaBatchStrategy(evidence),
          logger: false,
        });
        sender = app.get(Sender);
        relay = app.get(OutboxRelay);
        await relay.start();
        await Promise.all([app.listen(), sender.start(signal)]);
      },
      drain: () => sender?.drain(),
      stop: async () => {
        await sender?.stop();
        await app?.close();
        await relay?.stop();
      },
      notReady: () => (sender?.isDraining ? 'draining' : undefined),
      notAlive: () => {
        const lastFetchMs = sender?.parts.consumer.health.lastFetchMs ?? 0;
        return lastFetchMs > 0 && performance.now() - lastFetchMs > SILENT_MS
          ? `nothing fetched from ${topicName(config.TOPIC_PREFIX, 'executions')} for a minute`
          : undefined;
      },
    });
  return {
    lifecycle,
    get sender() {
      return sender;
    },
    get port() {
      return http.port;
    },
  };
}
