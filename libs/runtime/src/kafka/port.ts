/**
 * What the services know of Kafka: bytes and partitions in, bytes out. The client library stays behind it.
 */

export interface OutRecord {
  key: Buffer;
  value: Buffer;
  /** At most two on internal topics: a header costs 2.5 µs of the 9 µs that a record costs. */
  headers?: Record<string, string>;
}

export interface InRecord {
  offset: bigint;
  key: Buffer | null;
  value: Buffer;
  headers: Record<string, string>;
  /** Milliseconds since the epoch, set by the producer at the time of sending. */
  timestampMs: number;
}

export interface InBatch {
  topic: string;
  partition: number;
  records: InRecord[];
  /** Fires when the partition may have been taken away or the consumer stops: start nothing new. */
  signal: AbortSignal;
}

/**
 * A producer that never loses what it acknowledged. One call is one topic-partition; calls for the same partition
 * are sent one after the other, and what arrives while one is out is sent together as the next batch.
 * The promise fulfils when the brokers have acknowledged all the given records, and rejects with a KafkaSendError otherwise.
 */
export interface BatchProducer {
  connect(): Promise<void>;
  send(topic: string, partition: number, records: OutRecord[]): Promise<void>;
  close(): Promise<void>;
}

export interface ConsumerHealth {
  /** Monotonic milliseconds of the last heartbeat that the group coordinator accepted; 0 before the first. */
  lastHeartbeatMs: number;
  /** Monotonic milliseconds of the last fetch. */
  lastFetchMs: number;
  /** Monotonic milliseconds of the client's last sign of life, attempts that failed included. */
  lastActivityMs?: number;
  assigned: ReadonlyMap<string, readonly number[]>;
}

/** Handles whole batches, commits after the handler; a handler that keeps failing has its record parked in the dead-letter topic. */
export interface BatchConsumer {
  /** `onBatch` must be idempotent: after a rebalance records come again. Rejects only when the group can't be joined. */
  run(topics: string[], onBatch: (batch: InBatch) => Promise<void>): Promise<void>;
  readonly health: ConsumerHealth;
  stop(): Promise<void>;
}

/**
 * Hands records over and returns at once; the owner says when each one is finished, in any order. A timer commits, per
 * partition, the offset before the oldest unfinished record.
 */
export interface HandoverConsumer {
  run(
    topics: string[],
    hooks: {
      onRecords(batch: InBatch): void;
      onAssigned(topic: string, partitions: number[]): void;
      /** After this, finishing a record of these partitions does nothing. */
      onRevoked(topic: string, partitions: number[]): void;
    },
  ): Promise<void>;
  finished(topic: string, partition: number, offset: bigint): void;
  readonly health: ConsumerHealth;
  stop(): Promise<void>;
}

export interface TopicSpec {
  name: string;
  partitions: number;
  config: Record<string, string>;
}

export interface KafkaAdmin {
  /** Creates what is missing; never changes or deletes an existing topic. Answers the real partition count of each. */
  ensureTopics(topics: TopicSpec[]): Promise<Map<string, number>>;
  partitionCount(topic: string): Promise<number>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
