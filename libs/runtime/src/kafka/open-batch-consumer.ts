import { SpanKind } from '@opentelemetry/api';
import type { EachBatchPayload } from 'kafkajs';
import { silentLog, type Log } from '../log';
import { counter, histogram } from '../metrics';
import { pause } from '../pause';
import { ATTRIBUTES, METRICS } from '../telemetry-names';
import { startBatchSpan, within } from '../trace-context';
import { ConsumerSession, HEARTBEAT_MS, toInRecord, type ConsumerOptions } from './consumer-session';
import { DeadLetters } from './dead-letters';
import { handleIsolating } from './isolate-poison';
import type { BatchConsumer, BatchProducer, ConsumerHealth, InBatch, InRecord } from './port';
import { TimedCommits } from './timed-commits';

export interface BatchConsumerOptions extends ConsumerOptions {
  /** Where parked records go; a producer of its own if absent. */
  deadLetterProducer?: BatchProducer;
  /** Records that the handler gets at once, at most; 500 if absent. */
  mostRecords?: number;
  /** 500 ms if absent: what a crash brings again is what came within that time. */
  commitEveryMs?: number;
}

const handled = counter(METRICS.kafkaHandled, 'Records whose batch was handled');
const handleSeconds = histogram(METRICS.kafkaHandleSeconds, 'One call of the handler');

export function openBatchConsumer(options: BatchConsumerOptions): BatchConsumer {
  return new CommittingConsumer(options);
}

class CommittingConsumer implements BatchConsumer {
  private readonly session: ConsumerSession;
  private readonly deadLetters: DeadLetters;
  private readonly running = new Map<AbortController, Promise<void>>();
  private handledUpTo = new Map<string, { topic: string; partition: number; next: bigint }>();
  private readonly commits: TimedCommits;
  private readonly log: Log;
  private onBatch: (batch: InBatch) => Promise<void> = async () => undefined;

  constructor(private readonly options: BatchConsumerOptions) {
    this.log = (options.log ?? silentLog).with({ part: 'kafka-consumer', group: options.groupId });
    this.deadLetters = new DeadLetters(options, options.deadLetterProducer);
    this.session = new ConsumerSession(options, {
      onLeft: () => {
        this.abortAll();
        this.commits.left();
        this.handledUpTo = new Map();
      },
      onJoined: (assigned) => {
        // A handler that ended while the group was joining anew has left an offset that may be another's to commit.
        this.handledUpTo = new Map();
        this.log.info('joined the group', {
          count: [...assigned.values()].reduce((sum, partitions) => sum + partitions.length, 0),
        });
      },
      eachBatch: (payload, generation) => this.eachBatch(payload, generation),
    });
    this.commits = new TimedCommits({
      everyMs: options.commitEveryMs ?? 500,
      log: this.log,
      generation: () => this.session.generation,
      due: () =>
        [...this.handledUpTo].map(([name, { topic, partition, next }]) => ({
          topic,
          partition,
          next,
          done: () => {
            if (this.handledUpTo.get(name)?.next === next) this.handledUpTo.delete(name);
          },
        })),
    });
  }

  get health(): ConsumerHealth {
    return this.session.health;
  }

  async run(topics: string[], onBatch: (batch: InBatch) => Promise<void>): Promise<void> {
    this.onBatch = onBatch;
    this.commits.start();
    await this.session.start(topics);
  }

  async stop(): Promise<void> {
    await this.session.stop(async () => {
      this.abortAll();
      await Promise.all(this.running.values());
      await this.commits.stop();
    });
    await this.deadLetters.close();
  }

  private abortAll(): void {
    for (const controller of this.running.keys()) controller.abort();
  }

  private async eachBatch(payload: EachBatchPayload, generation: number): Promise<void> {
    if (!payload.isRunning() || payload.isStale() || this.session.signal.aborted) return;
    const controller = new AbortController();
    const work = this.handleBatch(payload, generation, controller);
    this.running.set(
      controller,
      work.catch(() => undefined),
    );
    // Heartbeats go out only when asked for, and their refusal is the one sign of a rebalance while a handler works.
    const heartbeats = setInterval(() => void payload.heartbeat().catch(() => controller.abort()), HEARTBEAT_MS);
    try {
      await work;
    } finally {
      clearInterval(heartbeats);
      this.running.delete(controller);
    }
  }

  private async handleBatch(payload: EachBatchPayload, generation: number, { signal }: AbortController): Promise<void> {
    const { topic, partition, messages } = payload.batch;
    const most = this.options.mostRecords ?? 500;
    this.commits.through(payload);
    for (let from = 0; from < messages.length && !signal.aborted; from += most) {
      const records = messages.slice(from, from + most).map(toInRecord);
      if (!(await this.handle(topic, partition, records, signal))) return;
      // A join in between: the partition may be another's, and the client would commit for it all the same.
      if (generation !== this.session.generation || payload.isStale()) return;
      const last = records.at(-1)!.offset;
      payload.resolveOffset(String(last));
      this.handledUpTo.set(`${topic}/${partition}`, { topic, partition, next: last + 1n });
      handled.add(records.length, { topic, group: this.options.groupId });
    }
  }

  private handle(topic: string, partition: number, records: InRecord[], signal: AbortSignal): Promise<boolean> {
    return handleIsolating(records, {
      signal,
      handle: (part) => this.handleOnce({ topic, partition, records: part, signal }),
      park: (record, failure) => this.deadLetters.park(topic, partition, record, failure, signal),
      backOff: (repetition, outage) => pause(outage ? Math.min(5_000, 100 * 2 ** repetition) : 50 * 4 ** repetition, signal),
      onRetry: (error, attempt, outage) => {
        if (outage && attempt > 3 && attempt % 10 !== 0) return;
        this.log.warn(
          outage ? 'something the handler needs is away; the batch waits for it' : 'the handler failed; the batch is tried again',
          {
            topic,
            partition,
            attempt,
            count: records.length,
            offset: records[0]!.offset,
            error,
          },
        );
      },
    });
  }

  private async handleOnce(batch: InBatch): Promise<void> {
    const started = performance.now();
    const span = startBatchSpan(
      `process ${batch.topic}`,
      SpanKind.CONSUMER,
      {
        [ATTRIBUTES.messagingSystem]: 'kafka',
        [ATTRIBUTES.destination]: batch.topic,
        [ATTRIBUTES.partition]: String(batch.partition),
        [ATTRIBUTES.operationName]: 'process',
        [ATTRIBUTES.operationType]: 'process',
        [ATTRIBUTES.batchSize]: batch.records.length,
        [ATTRIBUTES.offset]: Number(batch.records[0]!.offset),
        [ATTRIBUTES.group]: this.options.groupId,
      },
      (function* () {
        for (const { headers } of batch.records) yield headers.traceparent;
      })(),
    );
    await within(span, () => this.onBatch(batch));
    handleSeconds.record((performance.now() - started) / 1000, { topic: batch.topic, group: this.options.groupId });
  }
}
