import { join } from 'node:path';
import { OwnedFolder, endLeftoversOf } from './owned-folder';
import { startKafka, type RunningKafka } from './start-kafka';
import { startPostgres, type RunningPostgres } from './start-postgres';
import { startRedis, type RunningRedis } from './start-redis';
import { stoppedWhileStarting } from './wait-for-answer';

export interface LocalStackOptions {
  /** Data, logs and the record of what was started; one stack at a time uses it. */
  folder: string;
  progress?: (message: string) => void;
  kafkaBrokers?: 1 | 3;
  ports?: { kafka?: number; postgres?: number; redis?: number };
  /** Starts on the data of the run before; without it every run begins empty. */
  keep?: boolean;
  /** Deletes the folder when the stack stops. */
  removeOnStop?: boolean;
  /** Cancels a start that is under way: what it had started is stopped, and the start rejects. */
  signal?: AbortSignal;
  /** Where KAFKA_BROKERS, DATABASE_URL and REDIS_URL are looked up. */
  environment?: NodeJS.ProcessEnv;
}

export interface StackAddresses {
  KAFKA_BROKERS: string;
  DATABASE_URL: string;
  REDIS_URL: string;
}

export interface LocalStack {
  env: StackAddresses;
  /** Undefined for a server that an environment variable replaces. */
  kafka?: RunningKafka;
  postgres?: RunningPostgres;
  redis?: RunningRedis;
  /** Stops what this stack started, and only that. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

interface Stoppable {
  stop(): Promise<void>;
}

export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const environment = options.environment ?? process.env;
  const given = {
    kafka: nonEmpty(environment.KAFKA_BROKERS),
    postgres: nonEmpty(environment.DATABASE_URL),
    redis: nonEmpty(environment.REDIS_URL),
  };
  // The servers' folders are emptied, or kept, one by one when each is claimed.
  const owned = await OwnedFolder.claim(options.folder, { keep: true });
  const folderOf = (server: string): string => join(owned.path, server);
  const started: Stoppable[] = [];
  const failure = new AbortController();
  const signal = options.signal === undefined ? failure.signal : AbortSignal.any([options.signal, failure.signal]);
  const { keep, removeOnStop, progress } = options;

  const start = async <Server extends Stoppable>(
    name: string,
    address: string | undefined,
    run: () => Promise<Server>,
  ): Promise<Server | undefined> => {
    if (address !== undefined) {
      progress?.(`${name}: using the server that the environment names`);
      return undefined;
    }
    const since = Date.now();
    try {
      const server = await run();
      started.push(server);
      progress?.(`${name} is ready (${((Date.now() - since) / 1000).toFixed(1)} s)`);
      return server;
    } catch (error) {
      failure.abort();
      throw error;
    }
  };
  const shutDown = async (): Promise<void> => {
    const results = await Promise.allSettled(started.map((server) => server.stop()));
    owned.release({ remove: removeOnStop });
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  };

  await endLeftoversOf(['kafka', 'postgres', 'redis'].map(folderOf));
  const outcomes = await Promise.allSettled([
    start('Kafka', given.kafka, () =>
      startKafka({
        folder: folderOf('kafka'),
        brokers: options.kafkaBrokers,
        port: options.ports?.kafka,
        keep,
        progress,
        signal,
      }),
    ),
    start('PostgreSQL', given.postgres, () =>
      startPostgres({ folder: folderOf('postgres'), port: options.ports?.postgres, keep, progress, signal }),
    ),
    start('Redis', given.redis, () =>
      startRedis({ folder: folderOf('redis'), port: options.ports?.redis, keep, progress, signal }),
    ),
  ]);
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  if (errors.length > 0) {
    await shutDown();
    // A Ctrl-C reaches Maven, initdb and Kafka's formatter as well: their errors are then only its consequence.
    throw options.signal?.aborted === true ? stoppedWhileStarting() : firstCause(errors);
  }
  const [kafka, postgres, redis] = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined)) as [
    RunningKafka | undefined,
    RunningPostgres | undefined,
    RunningRedis | undefined,
  ];
  let stopping: Promise<void> | undefined;
  return {
    env: {
      KAFKA_BROKERS: given.kafka ?? kafka!.brokers,
      DATABASE_URL: given.postgres ?? postgres!.url,
      REDIS_URL: given.redis ?? redis!.url,
    },
    kafka,
    postgres,
    redis,
    stop: () => (stopping ??= shutDown()),
  };
}

/** One failure cancels the other starts: their cancellation is not what the reader needs to know. */
function firstCause(errors: readonly unknown[]): unknown {
  return errors.find((error) => (error as { code?: string }).code !== 'stopped_while_starting') ?? errors[0];
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value.trim();
}
