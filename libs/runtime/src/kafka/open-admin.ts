import type { Admin } from 'kafkajs';
import { PunctualError } from '../errors';
import { kafkaClient, waitForKafka, type KafkaOptions } from './connection';
import type { KafkaAdmin, TopicSpec } from './port';

export interface AdminOptions extends KafkaOptions {
  /** Copies of each partition; as many as there are brokers, 3 at most, if absent. */
  replicationFactor?: number;
  signal?: AbortSignal;
}

export class UnknownTopicError extends PunctualError {
  constructor(topic: string) {
    super(
      'kafka_topic_unknown',
      `The topic ${topic} does not exist. Services create the topics at start; check the prefix and the permissions.`,
      { retriable: true },
    );
  }
}

/** Waits for the brokers. */
export async function openAdmin(options: AdminOptions): Promise<KafkaAdmin> {
  await waitForKafka(options, [], options.signal ?? new AbortController().signal);
  const admin = kafkaClient(options).admin();
  await admin.connect();
  return new KafkajsAdmin(admin, options);
}

class KafkajsAdmin implements KafkaAdmin {
  constructor(
    private readonly admin: Admin,
    private readonly options: AdminOptions,
  ) {}

  async ensureTopics(topics: TopicSpec[]): Promise<Map<string, number>> {
    const existing = new Set(await this.admin.listTopics());
    const missing = topics.filter(({ name }) => !existing.has(name));
    if (missing.length > 0) await this.create(missing);
    await waitForKafka(
      this.options,
      topics.map(({ name }) => name),
      this.options.signal ?? new AbortController().signal,
    );
    const { topics: found } = await this.admin.fetchTopicMetadata({ topics: topics.map(({ name }) => name) });
    return new Map(found.map(({ name, partitions }) => [name, partitions.length]));
  }

  async partitionCount(topic: string): Promise<number> {
    if (!(await this.admin.listTopics()).includes(topic)) throw new UnknownTopicError(topic);
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] });
    return topics[0]?.partitions.length ?? 0;
  }

  async ping(): Promise<void> {
    await this.admin.describeCluster();
  }

  async close(): Promise<void> {
    await this.admin.disconnect();
  }

  private async create(topics: TopicSpec[]): Promise<void> {
    const { brokers } = await this.admin.describeCluster();
    const replicationFactor = this.options.replicationFactor ?? Math.min(3, brokers.length);
    try {
      await this.admin.createTopics({
        waitForLeaders: false,
        topics: topics.map(({ name, partitions, config }) => ({
          topic: name,
          numPartitions: partitions,
          replicationFactor,
          configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
        })),
      });
    } catch (error) {
      // Several services start at once: whoever comes second finds some of them there.
      const failures = (error as { errors?: { type?: string }[] }).errors ?? [error as { type?: string }];
      if (failures.some(({ type }) => type !== 'TOPIC_ALREADY_EXISTS')) throw error;
    }
  }
}
