import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { Codec } from '#contracts/codec';
import type { Draft } from '#contracts/draft';
import { partitionFor } from '#contracts/murmur2';
import { topicName, topicSpecs, type TopicName } from '#contracts/topics';
import { healthServer, type HealthServer } from '#runtime/http/health';
import { KafkaBatchStrategy } from '#runtime/kafka/nest-strategy';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { openProducer } from '#runtime/kafka/open-producer';
import type { BatchConsumer } from '#runtime/kafka/port';
import { Lifecycle } from '#runtime/lifecycle';
import { telemetryPart } from '#runtime/loaded-telemetry';
import type { Log } from '#runtime/log';
import { gauge } from '#runtime/metrics';
import { OutboxRelay } from '#runtime/outbox/outbox-relay';
import { DedicatedClient } from '#runtime/postgres/dedicated-client';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { waitForSchema } from '#runtime/postgres/wait-for-schema';
import { AppModule } from './app.module';
import type { SchedulerConfig } from './config';
import { encodeDraft } from './kafka/outbox-drafts';
import { METRICS } from './metric-names';
import { PlanSchedules } from './plan-schedules';
import { ReleaseDue } from './release-due';
import { ReleaseLoop } from './release-loop';
import { RepeatStep } from '#runtime/repeat-step';
import { SettleUnanswered } from './settle-unanswered';
import { Sweep, type Backlog } from './sweep';

/** Where a sleeping process is told that there is something to release: by a plan, or by credit for due work. */
const CHANNEL = 'punctual_release';
const TIDY_MS = 60_000;
const MEASURE_MS = 15_000;
/** The pool closes connections that were idle for a minute. */
const WARM_UP_MS = 20_000;
/** Who of a run of ten million has an answer takes PostgreSQL some twenty seconds to say. */
const PATIENCE_MS = 120_000;

export interface Scheduler {
  lifecycle: Lifecycle;
  health: HealthServer;
}

/** Everything a scheduler process consists of, in the order in which it starts. */
export function composeScheduler(config: SchedulerConfig, log: Log): Scheduler {
  const databaseUrl = config.DATABASE_URL.reveal();
  const kafka = { brokers: config.KAFKA_BROKERS, clientId: `scheduler-${config.INSTANCE_ID}`, log };
  const lifecycle = new Lifecycle({ log, drainDeadlineMs: config.DRAIN_DEADLINE_MS });
  const health = healthServer(lifecycle, { host: config.HOST, port: config.PORT });
  const producer = openProducer(kafka);
  const codec = new Codec();
  const partitions = new Map<string, number>();
  const topic = (name: TopicName) => topicName(config.TOPIC_PREFIX, name);
  let database: PostgresDatabase;
  // Of its own, so that a release never waits for a connection that plans or sweeps.
  let releaseDatabase: PostgresDatabase;
  let patientDatabase: PostgresDatabase;
  const releaseConnections = config.RELEASE_IN_FLIGHT + 1;
  let relay: OutboxRelay;
  let releases: ReleaseLoop;
  let listener: DedicatedClient;
  let warmUp: RepeatStep | undefined;
  let repeated: RepeatStep[] = [];
  let consumer: BatchConsumer;
  let application: INestMicroservice | undefined;

  lifecycle
    .add(telemetryPart())
    .add(health)
    .add({
      name: 'postgres',
      start: async (signal) => {
        const options = { url: databaseUrl, log, signal };
        const name = `scheduler-${config.INSTANCE_ID}`;
        database = await openDatabase({ ...options, name, max: config.DATABASE_CONNECTIONS });
        releaseDatabase = await openDatabase({ ...options, name: `${name}-release`, max: releaseConnections });
        patientDatabase = await openDatabase({ ...options, name: `${name}-sweep`, max: 3, statementTimeoutMs: PATIENCE_MS });
        await waitForSchema(database, undefined, { log, signal });
      },
      stop: async () => {
        await releaseDatabase?.close();
        await patientDatabase?.close();
        await database?.close();
      },
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
          schema: 'scheduler',
          producer,
          // Plans and refusals are read by receipts, which collects as well: nobody waits for one.
          collectMs: 100,
          encode: (_topic, draft) => ({ value: encodeDraft(codec, draft as Draft) }),
          partitionOf: (name, key) => partitionFor(key, partitions.get(topic(name as TopicName))!),
          topicName: (name) => topic(name as TopicName),
          log,
        });
        return relay.start();
      },
      stop: () => relay?.stop(),
    })
    .add({
      name: 'releases',
      start: async () => {
        const settings = releaseSettings(config, topic('executions'), partitions);
        const releaseDue = new ReleaseDue(releaseDatabase, producer, codec, settings, log, patientDatabase);
        await releaseDue.warmUp(releaseConnections);
        warmUp = new RepeatStep('warm-up', () => releaseDue.warmUp(releaseConnections).then(() => WARM_UP_MS), log);
        warmUp.start();
        releases = new ReleaseLoop(
          releaseDue,
          { pollMs: config.POLL_MS, unservedMs: config.UNSERVED_POLL_MS, inFlight: config.RELEASE_IN_FLIGHT, backOffMs: 500 },
          log,
        );
        listener = new DedicatedClient({ url: databaseUrl, name: `scheduler-listen-${config.INSTANCE_ID}`, log });
        await listener.listen(CHANNEL, () => releases.wake());
        await listener.connect();
        releases.start();
      },
      drain: async () => {
        await warmUp?.stop();
        await releases?.stop();
      },
      stop: () => listener?.close(),
      notReady: () => (performance.now() - releases.lastLookMs > 10_000 ? 'the due index was not read for 10 s' : undefined),
    })
    .add({
      name: 'sweep',
      start: () => {
        repeated = sweeps(config, patientDatabase, log);
        for (const step of repeated) step.start();
      },
      drain: async () => {
        await Promise.all(repeated.map((step) => step.stop()));
      },
    })
    .add({
      name: 'schedules-consumer',
      start: async () => {
        const planSchedules = new PlanSchedules(database, codec, { checkAfterMs: config.UNANSWERED_AFTER_MS }, (dueInMs) => {
          relay.wake();
          if (dueInMs !== null) releases.wakeIn(dueInMs);
        });
        const groupId = `${config.TOPIC_PREFIX}scheduler`;
        consumer = openBatchConsumer({
          ...kafka,
          groupId,
          deadLetterProducer: producer,
          onFatal: (error) => lifecycle.fail(error),
        });
        application = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule.of(topic('schedules'), planSchedules), {
          strategy: new KafkaBatchStrategy(consumer),
          logger: false,
        });
        await application.listen();
      },
      drain: () => application?.close(),
      notReady: () => (consumer.health.lastHeartbeatMs === 0 ? 'not a member of the group yet' : undefined),
      notAlive: () => (performance.now() - consumer.health.lastFetchMs > 120_000 ? 'nothing was fetched for 120 s' : undefined),
    });
  return { lifecycle, health };
}

function releaseSettings(config: SchedulerConfig, executionsTopic: string, partitions: ReadonlyMap<string, number>) {
  return {
    instanceId: config.INSTANCE_ID,
    executionsTopic,
    partitions: partitions.get(executionsTopic)!,
    checkAfterMs: config.UNANSWERED_AFTER_MS,
    limits: {
      leaseMs: config.RELEASE_LEASE_MS,
      creditAgeMs: config.CREDIT_AGE_MS,
      wake: config.WAKE_RUNS,
      numbers: config.RELEASE_NUMBERS,
      runs: config.RELEASE_RUNS,
      records: config.RELEASE_RECORDS,
      // Somewhat further than the next poll, so that no instant falls between two looks.
      lookAheadMs: config.POLL_MS + 500,
    },
  };
}

function sweeps(config: SchedulerConfig, database: PostgresDatabase, log: Log): RepeatStep[] {
  const settle = new SettleUnanswered(
    database,
    { creditAgeMs: config.CREDIT_AGE_MS, checkAfterMs: config.UNANSWERED_AFTER_MS },
    log,
  );
  const settings = {
    checkAfterMs: config.UNANSWERED_AFTER_MS,
    holdGiveUpMs: config.HOLD_GIVE_UP_MS,
    lookAgainMs: config.LOOK_AGAIN_MS,
    runRetentionMs: config.RUN_RETENTION_MS,
    page: 500,
  };
  const sweep = new Sweep(database, settle, settings, log);
  let backlog: Backlog = { runs: 0, waiting: 0, messages: 0 };
  gauge(METRICS.activeRuns, 'Runs that are due and not at their end', () => [{ value: backlog.runs }]);
  gauge(METRICS.waitingRuns, 'Of these, runs that are set aside: paused, held', () => [{ value: backlog.waiting }]);
  gauge(METRICS.backlog, 'Messages that are due and not handed over', () => [{ value: backlog.messages }]);
  return [
    new RepeatStep('sweep', async () => ((await sweep.sweepOnce()).more ? 0 : config.SWEEP_MS), log),
    new RepeatStep('tidy', async () => ((await sweep.tidyOnce(Date.now())).deletedRuns > 0 ? 1_000 : TIDY_MS), log),
    new RepeatStep(
      'measure',
      async () => {
        backlog = await sweep.measureOnce();
        return MEASURE_MS;
      },
      log,
    ),
  ];
}
