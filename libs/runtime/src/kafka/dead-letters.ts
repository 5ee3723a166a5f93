import { describeError } from '../describe-error';
import { silentLog, type Log } from '../log';
import { counter } from '../metrics';
import { pause } from '../pause';
import { METRICS } from '../telemetry-names';
import type { KafkaOptions } from './connection';
import { openAdmin } from './open-admin';
import { openProducer } from './open-producer';
import type { BatchProducer, InRecord } from './port';

const parkedRecords = counter(METRICS.kafkaParked, 'Records that could not be handled and were put into the dead-letter topic');
const RETENTION_MS = 30 * 86_400_000;

/**
 * Puts a record that can't be handled into `<topic>.dead`, with key, value and headers as they were and the reason beside them:
 * `dead-code`, `dead-reason`, `dead-topic`, `dead-partition`, `dead-offset`.
 */
export class DeadLetters {
  private readonly log: Log;
  private readonly known = new Set<string>();
  private readonly own: BatchProducer | undefined;
  private readonly producer: BatchProducer;

  constructor(
    private readonly options: KafkaOptions,
    producer?: BatchProducer,
  ) {
    this.log = (options.log ?? silentLog).with({ part: 'dead-letters' });
    this.own = producer ? undefined : openProducer({ ...options, clientId: `${options.clientId}-dead-letters` });
    this.producer = producer ?? this.own!;
  }

  /** Tries until it is done: a record that is neither handled nor parked would be lost. False if the signal fired before that. */
  async park(topic: string, partition: number, record: InRecord, failure: unknown, signal: AbortSignal): Promise<boolean> {
    const { code, type, message } = describeError(failure);
    const dead = `${topic}.dead`;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await this.ensure(dead, signal);
        await this.producer.send(dead, 0, [
          {
            key: record.key ?? Buffer.alloc(0),
            value: record.value,
            headers: {
              ...record.headers,
              'dead-code': code ?? type,
              'dead-reason': message.slice(0, 300),
              'dead-topic': topic,
              'dead-partition': String(partition),
              'dead-offset': String(record.offset),
            },
          },
        ]);
        parkedRecords.add(1, { topic, code: code ?? type });
        this.log.error('a record could not be handled and was parked in the dead-letter topic; the others go on', {
          topic,
          partition,
          offset: record.offset,
          error: failure,
        });
        return true;
      } catch (error) {
        this.log.warn('parking a record failed; trying again', { topic, partition, offset: record.offset, attempt, error });
        await pause(Math.min(5_000, 200 * 2 ** attempt), signal);
      }
    }
    return false;
  }

  async close(): Promise<void> {
    await this.own?.close();
  }

  private async ensure(dead: string, signal: AbortSignal): Promise<void> {
    if (this.known.has(dead)) return;
    const admin = await openAdmin({ ...this.options, signal });
    try {
      await admin.ensureTopics([{ name: dead, partitions: 1, config: { 'retention.ms': String(RETENTION_MS) } }]);
      this.known.add(dead);
    } finally {
      await admin.close().catch(() => undefined);
    }
  }
}
