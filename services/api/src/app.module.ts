import { Module, type DynamicModule } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Codec } from '#contracts/codec';
import { partitionFor } from '#contracts/murmur2';
import { topicName, topicSpecs } from '#contracts/topics';
import { systemClock, type Clock } from '#runtime/clock';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openProducer } from '#runtime/kafka/open-producer';
import { Lifecycle } from '#runtime/lifecycle';
import { telemetryPart } from '#runtime/loaded-telemetry';
import type { Log } from '#runtime/log';
import { OutboxRelay } from '#runtime/outbox/outbox-relay';
import { openDatabase } from '#runtime/postgres/open-database';
import { waitForSchema } from '#runtime/postgres/wait-for-schema';
import { keyFrom } from '#runtime/sealed-secret';
import { ApiParts } from './api-parts';
import { AudienceParts } from './audience/audience-parts';
import { openAudienceParts } from './audience/open-audience-parts';
import type { ApiConfig } from './config';
import { AudiencesController } from './http/audiences-controller';
import { Door } from './http/door';
import { createHttpServer } from './http/http-server';
import { AnswerKeeper } from './keep-answers';
import { LateDatabase } from './postgres/late-database';
import { RunsController } from './http/runs-controller';
import { SchedulesController } from './http/schedules-controller';
import { TenantsController } from './http/tenants-controller';

@Module({})
export class AppModule {
  static of(parts: ApiParts, audiences: AudienceParts, door: Door): DynamicModule {
    return {
      module: AppModule,
      controllers: [SchedulesController, RunsController, AudiencesController, TenantsController],
      providers: [
        { provide: ApiParts, useValue: parts },
        { provide: AudienceParts, useValue: audiences },
        { provide: Door, useValue: door },
      ],
    };
  }
}

export interface Api {
  lifecycle: Lifecycle;
  /** Where it listens, once the lifecycle has begun to start. */
  origin(): string;
}

const LOCK_TIMEOUT_MS = 1_000;

/** The service as a whole, not started yet. It listens at once and says what it waits for; requests get 503 until then. */
export async function composeApi(config: ApiConfig, log: Log, clock: Clock = systemClock): Promise<Api> {
  const lifecycle = new Lifecycle({ log, drainDeadlineMs: config.DRAIN_DEADLINE_MS });
  const database = new LateDatabase();
  const kafka = { brokers: config.KAFKA_BROKERS, clientId: `api-${config.INSTANCE_ID}`, log };
  const producer = openProducer(kafka);
  let partitions = new Map<string, number>();
  const schedulesTopic = topicName(config.TOPIC_PREFIX, 'schedules');
  const relay = new OutboxRelay({
    database,
    databaseUrl: config.DATABASE_URL.reveal(),
    schema: 'api',
    producer,
    partitionOf: (topic, key) => partitionFor(key, partitions.get(topic)!),
    log,
  });
  const parts: ApiParts = {
    database,
    codec: new Codec(),
    idKey: keyFrom(config.ID_KEY),
    credentialsKey: keyFrom(config.CREDENTIALS_KEY),
    schedulesTopic,
    holdGiveUpMs: config.HOLD_GIVE_UP_MS,
    wakeRelay: () => relay.wake(),
  };
  let app: NestFastifyApplication | undefined;
  let address = `http://${config.HOST}:${config.PORT}`;
  const door = new Door(database, clock, config.OPERATOR_KEY.reveal(), () => config.PUBLIC_URL ?? address);
  const keeper = new AnswerKeeper(database, log);
  const audiences = openAudienceParts(database, config, parts.idKey, clock, log);

  lifecycle
    .add(telemetryPart())
    .add({
      name: 'http',
      start: async () => {
        app = await createHttpServer(AppModule.of(parts, audiences.parts, door), door, lifecycle, log, {
          headersDeadlineMs: config.HEADERS_DEADLINE_MS,
          bodyDeadlineMs: config.BODY_DEADLINE_MS,
        });
        await app.listen(config.PORT, config.HOST);
        address = (await app.getUrl()).replace('[::1]', '127.0.0.1');
        log.info('listening', { address });
      },
      // Ends when the open requests have their answers.
      drain: () => app?.close(),
    })
    .add({
      name: 'postgres',
      start: async (signal) => {
        const opened = await openDatabase({
          url: config.DATABASE_URL.reveal(),
          name: 'api',
          lockTimeoutMs: LOCK_TIMEOUT_MS,
          idleInTransactionTimeoutMs: LOCK_TIMEOUT_MS,
          log,
          signal,
        });
        await waitForSchema(opened, undefined, { log, signal });
        database.open(opened);
      },
      stop: () => database.close(),
      notReady: () => database.notReady(),
    })
    .add({
      name: 'kafka',
      start: async (signal) => {
        const admin = await openAdmin({ ...kafka, signal });
        partitions = await admin.ensureTopics(topicSpecs(config.TOPIC_PREFIX));
        await admin.close();
        await producer.connect();
      },
      stop: () => producer.close(),
    })
    .add({ name: 'outbox', start: () => relay.start(), stop: () => relay.stop() })
    .add({ name: 'audiences', start: () => audiences.sweeper.start(), stop: () => audiences.close() })
    .add({ name: 'answers', start: () => keeper.start(), stop: () => keeper.stop() });
  return { lifecycle, origin: () => address };
}
