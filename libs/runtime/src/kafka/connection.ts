import { isError } from '../is-error';
import { Kafka, logLevel, type KafkaConfig, type LogEntry } from 'kafkajs';
import { silentLog, type Log } from '../log';
import { pause } from '../pause';
import { letIdleConnectionsSleep } from './idle-request-queue';
import { kafkaSecurity, type KafkaSecurity } from './security';

letIdleConnectionsSleep();

export interface KafkaOptions {
  brokers: string[];
  clientId: string;
  /** What the KAFKA_TLS_* and KAFKA_SASL_* variables say, if absent. */
  security?: KafkaSecurity;
  log?: Log;
}

/**
 * Many short retries: the client then rides out the death of a broker (5 to 7 s) without crashing. With the defaults (5 tries,
 * growing to 30 s) consumers stood still for up to 36 s.
 */
export const RETRY = { initialRetryTime: 100, maxRetryTime: 500, retries: 40 } as const;

export function kafkaClient(options: KafkaOptions, retry: KafkaConfig['retry'] = RETRY): Kafka {
  const security = options.security ?? kafkaSecurity();
  const log = options.log ?? silentLog;
  return new Kafka({
    clientId: options.clientId,
    brokers: options.brokers,
    retry,
    connectionTimeout: 2_000,
    requestTimeout: 10_000,
    ...(security.ca || security.certificate
      ? { ssl: { ca: security.ca ? [security.ca] : undefined, cert: security.certificate, key: security.key?.reveal() } }
      : {}),
    ...(security.username && security.password
      ? { sasl: { mechanism: 'scram-sha-512' as const, username: security.username, password: security.password.reveal() } }
      : {}),
    logLevel: logLevel.WARN,
    logCreator: () => (entry) => toLog(log, entry),
  });
}

/** The client calls every retry an error; what really fails reaches its caller as one. */
function toLog(log: Log, { level, namespace, log: entry }: LogEntry): void {
  const text = `kafka client, ${namespace}: ${entry.message}`;
  const fields = { part: 'kafka-client', hint: typeof entry.error === 'string' ? entry.error : undefined, group: entry.groupId };
  if (entry.message.startsWith('Limiting retries for the idempotent producer')) return;
  if (level <= logLevel.WARN) log.warn(text, fields);
  else log.debug(text, fields);
}

/** Asks until the brokers answer and, if topics are named, until all of these have a leader for every partition. */
export async function waitForKafka(options: KafkaOptions, topics: string[], signal: AbortSignal): Promise<void> {
  const log = options.log ?? silentLog;
  let told: string | undefined;
  for (let attempt = 1; !signal.aborted; attempt++) {
    // Its own retries are few: the loop here reports, and ends when it is told to.
    const admin = kafkaClient({ ...options, log: silentLog }, { initialRetryTime: 50, maxRetryTime: 200, retries: 2 }).admin();
    try {
      await admin.connect();
      await admin.describeCluster();
      if (topics.length > 0) {
        const existing = new Set(await admin.listTopics());
        const missing = topics.filter((topic) => !existing.has(topic));
        if (missing.length > 0) throw new Error(`no such topic yet: ${missing.join(', ')}`);
        const metadata = await admin.fetchTopicMetadata({ topics });
        const leaderless = metadata.topics.filter(({ partitions }) => partitions.some(({ leader }) => leader < 0));
        if (leaderless.length > 0) throw new Error(`no leader yet: ${leaderless.map(({ name }) => name).join(', ')}`);
      }
      return;
    } catch (error) {
      const waitingFor = isError(error) ? error.message : 'an answer';
      if ((attempt === 1 || attempt % 20 === 0) && waitingFor !== told) {
        log.info('waiting for Kafka', { waitingFor, attempt, address: options.brokers.join(', ') });
        told = waitingFor;
      }
    } finally {
      await admin.disconnect().catch(() => undefined);
    }
    await pause(Math.min(1_000, 100 * attempt), signal);
  }
}
