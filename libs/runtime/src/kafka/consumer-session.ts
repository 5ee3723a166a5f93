import type { Consumer, ConsumerRunConfig, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { PunctualError } from '../errors';
import { silentLog, type Log } from '../log';
import { gauge } from '../metrics';
import { METRICS } from '../telemetry-names';
import { kafkaClient, RETRY, waitForKafka, type KafkaOptions } from './connection';
import type { ConsumerHealth, InRecord } from './port';

export const SESSION_TIMEOUT_MS = 6_000;
export const HEARTBEAT_MS = 1_000;

export interface ConsumerOptions extends KafkaOptions {
  groupId: string;
  /** The group can't be consumed any more and the client won't start again: exit, so that somebody starts the process anew. */
  onFatal?: (error: unknown) => void;
  /** What a fetch waits for at most when there is nothing; 250 ms if absent. Latency does not depend on it (5 to 500 ms measured the same), rebalances do. */
  maxWaitMs?: number;
  /**
   * The broker holds an answer back until it has this much, for `maxWaitMs` at most; 1 if absent. Where a batch costs a
   * transaction and nothing is urgent, records are collected at the broker instead of one by one.
   */
  minBytes?: number;
}

export class ConsumerFailedError extends PunctualError {
  constructor(groupId: string, cause: unknown) {
    super(
      'kafka_consumer_failed',
      `The consumer group ${groupId} can not be joined; restart the process after correcting the cause.`,
      { cause },
    );
  }
}

interface Hooks {
  /** Everything assigned before counts as taken away: the protocol is eager. */
  onLeft(): void;
  onJoined(assigned: ReadonlyMap<string, readonly number[]>): void;
  eachBatch(payload: EachBatchPayload, generation: number): Promise<void>;
}

/** What both kinds of consumer share: joining, health, and the end. */
export class ConsumerSession {
  readonly health: { -readonly [K in keyof ConsumerHealth]: ConsumerHealth[K] } = {
    lastHeartbeatMs: 0,
    lastFetchMs: 0,
    assigned: new Map(),
  };
  /** Rises with every join: what began under an older one must neither commit nor go on. */
  generation = 0;
  private readonly stopping = new AbortController();
  private readonly log: Log;
  private readonly lag = new Map<string, { topic: string; partition: number; lag: number }>();
  private endLagGauge: (() => void) | undefined;
  private consumer: Consumer | undefined;
  private heartbeatSentMs = 0;

  constructor(
    private readonly options: ConsumerOptions,
    private readonly hooks: Hooks,
  ) {
    this.log = (options.log ?? silentLog).with({ part: 'kafka-consumer', group: options.groupId });
  }

  get signal(): AbortSignal {
    return this.stopping.signal;
  }

  async start(topics: string[]): Promise<void> {
    await waitForKafka(this.options, topics, this.signal);
    if (this.signal.aborted) return;
    const consumer = kafkaClient(this.options).consumer({
      groupId: this.options.groupId,
      sessionTimeout: SESSION_TIMEOUT_MS,
      heartbeatInterval: HEARTBEAT_MS,
      maxWaitTimeInMs: this.options.maxWaitMs ?? 250,
      minBytes: this.options.minBytes ?? 1,
      allowAutoTopicCreation: false,
      retry: RETRY,
    });
    this.consumer = consumer;
    const joined = this.watch(consumer);
    joined.catch(() => undefined);
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: true });
    const run: ConsumerRunConfig = {
      autoCommit: false,
      eachBatchAutoResolve: false,
      // More than a consumer is ever assigned; a worker that has nothing to do costs nothing.
      partitionsConsumedConcurrently: 128,
      eachBatch: (payload) => {
        this.health.lastFetchMs = performance.now();
        const { topic, partition } = payload.batch;
        const last = payload.batch.messages.at(-1);
        if (last)
          this.lag.set(`${topic}/${partition}`, {
            topic,
            partition,
            lag: Math.max(0, Number(payload.batch.highWatermark) - 1 - Number(last.offset)),
          });
        return this.hooks.eachBatch(payload, this.generation);
      },
    };
    await consumer.run(run);
    this.endLagGauge = gauge(METRICS.kafkaLag, 'Records behind the end of the partition, as of the last batch', () =>
      [...this.lag.values()].map(({ topic, partition, lag }) => ({
        value: lag,
        labels: { topic, partition, group: this.options.groupId },
      })),
    );
    await joined;
  }

  /** `beforeLeaving` runs when nothing new is started any more, while the group still takes commits. */
  async stop(beforeLeaving: () => Promise<void> = async () => undefined): Promise<void> {
    this.stopping.abort();
    await beforeLeaving();
    this.endLagGauge?.();
    // Leaves the group at once; the others would wait for the session time-out otherwise.
    await this.consumer?.disconnect().catch((error: unknown) => this.log.warn('leaving the group failed', { error }));
    this.health.assigned = new Map();
  }

  private watch(consumer: Consumer): Promise<void> {
    const { events } = consumer;
    for (const sign of [
      events.FETCH_START,
      events.FETCH,
      events.HEARTBEAT,
      events.CONNECT,
      events.REBALANCING,
      events.GROUP_JOIN,
      events.CRASH,
      events.REQUEST_TIMEOUT,
    ]) {
      consumer.on(sign, () => (this.health.lastActivityMs = performance.now()));
    }
    consumer.on(events.REQUEST, ({ payload }) => {
      // The coordinator accepted it at some time after it was sent. Counting from the answer would let a process that was
      // frozen in between believe in a session that has ended.
      if (payload.apiName === 'Heartbeat' || payload.apiName === 'SyncGroup')
        this.heartbeatSentMs = performance.now() - Math.max(0, Date.now() - payload.createdAt);
    });
    consumer.on(events.HEARTBEAT, () => (this.health.lastHeartbeatMs = this.heartbeatSentMs));
    consumer.on(events.FETCH, () => (this.health.lastFetchMs = performance.now()));
    consumer.on(events.REBALANCING, () => this.left());
    return new Promise((resolve, reject) => {
      consumer.on(events.GROUP_JOIN, ({ payload }) => {
        this.left();
        this.generation++;
        this.health.lastHeartbeatMs = this.heartbeatSentMs;
        this.health.assigned = new Map(Object.entries(payload.memberAssignment));
        this.hooks.onJoined(this.health.assigned);
        resolve();
      });
      consumer.on(events.CRASH, ({ payload }) => {
        this.left();
        if (payload.restart || this.signal.aborted) {
          this.log.warn('the consumer failed and starts again', { error: payload.error });
          return;
        }
        const failure = new ConsumerFailedError(this.options.groupId, payload.error);
        this.log.error('the consumer failed for good', { error: failure });
        reject(failure);
        this.options.onFatal?.(failure);
      });
    });
  }

  private left(): void {
    if (this.health.assigned.size === 0) return;
    this.hooks.onLeft();
    this.health.assigned = new Map();
    this.lag.clear();
  }
}

export function toInRecord(message: KafkaMessage): InRecord {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) headers[name] = first.toString();
  }
  return {
    offset: BigInt(message.offset),
    key: message.key,
    value: message.value ?? Buffer.alloc(0),
    headers,
    timestampMs: Number(message.timestamp),
  };
}
