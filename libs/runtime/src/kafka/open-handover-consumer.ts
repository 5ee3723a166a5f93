import type { EachBatchPayload } from 'kafkajs';
import { silentLog, type Log } from '../log';
import { ConsumerSession, toInRecord, type ConsumerOptions } from './consumer-session';
import { DeadLetters } from './dead-letters';
import { FinishedPrefix } from './finished-prefix';
import type { BatchProducer, ConsumerHealth, HandoverConsumer, InBatch, InRecord } from './port';
import { TimedCommits } from './timed-commits';

export interface HandoverConsumerOptions extends ConsumerOptions {
  deadLetterProducer?: BatchProducer;
  /** 250 ms if absent. */
  commitEveryMs?: number;
  /** A partition with more unfinished records than this is not fetched from until half of them are done; 20,000 if absent. */
  mostUnfinished?: number;
}

export interface ParkingHandoverConsumer extends HandoverConsumer {
  /** Puts a record that can't be read into the dead-letter topic, then finishes it. */
  park(topic: string, partition: number, record: InRecord, failure: unknown): Promise<void>;
  /** One commit of what is finished; the timer's step. */
  commitOnce(): Promise<void>;
}

type Hooks = Parameters<HandoverConsumer['run']>[1];

export function openHandoverConsumer(options: HandoverConsumerOptions): ParkingHandoverConsumer {
  return new HandingOverConsumer(options);
}

class HandingOverConsumer implements ParkingHandoverConsumer {
  private readonly session: ConsumerSession;
  private readonly deadLetters: DeadLetters;
  private readonly log: Log;
  private prefixes = new Map<string, { topic: string; partition: number; prefix: FinishedPrefix }>();
  private readonly held = new Map<string, () => void>();
  private assignment = new AbortController();
  private hooks: Hooks | undefined;
  private readonly commits: TimedCommits;

  constructor(private readonly options: HandoverConsumerOptions) {
    this.log = (options.log ?? silentLog).with({ part: 'kafka-consumer', group: options.groupId });
    this.deadLetters = new DeadLetters(options, options.deadLetterProducer);
    this.session = new ConsumerSession(options, {
      onLeft: () => this.revoke(),
      onJoined: (assigned) => {
        for (const [topic, partitions] of assigned) this.hooks?.onAssigned(topic, [...partitions]);
      },
      eachBatch: (payload) => this.eachBatch(payload),
    });
    this.commits = new TimedCommits({
      everyMs: options.commitEveryMs ?? 250,
      log: this.log,
      generation: () => this.session.generation,
      due: () =>
        [...this.prefixes.values()].flatMap(({ topic, partition, prefix }) => {
          const next = prefix.toCommit();
          return next === undefined ? [] : [{ topic, partition, next, done: () => prefix.commitDone(next) }];
        }),
    });
  }

  get health(): ConsumerHealth {
    return this.session.health;
  }

  async run(topics: string[], hooks: Hooks): Promise<void> {
    this.hooks = hooks;
    this.commits.start();
    await this.session.start(topics);
  }

  finished(topic: string, partition: number, offset: bigint): void {
    const name = `${topic}/${partition}`;
    const of = this.prefixes.get(name);
    if (!of) return;
    of.prefix.finish(offset);
    if (of.prefix.pending <= this.mostUnfinished / 2) {
      this.held.get(name)?.();
      this.held.delete(name);
    }
  }

  async park(topic: string, partition: number, record: InRecord, failure: unknown): Promise<void> {
    const { signal } = this.assignment;
    if ((await this.deadLetters.park(topic, partition, record, failure, signal)) && !signal.aborted)
      this.finished(topic, partition, record.offset);
  }

  commitOnce(): Promise<void> {
    return this.commits.commitOnce();
  }

  async stop(): Promise<void> {
    await this.session.stop(async () => {
      await this.commits.stop();
      this.revoke();
    });
    await this.deadLetters.close();
  }

  private get mostUnfinished(): number {
    return this.options.mostUnfinished ?? 20_000;
  }

  private async eachBatch(payload: EachBatchPayload): Promise<void> {
    if (!payload.isRunning() || payload.isStale() || this.session.signal.aborted) return;
    const { topic, partition } = payload.batch;
    const name = `${topic}/${partition}`;
    const records = payload.batch.messages.map(toInRecord);
    if (records.length === 0) return;
    let of = this.prefixes.get(name);
    if (!of) this.prefixes.set(name, (of = { topic, partition, prefix: new FinishedPrefix() }));
    for (const { offset } of records) of.prefix.receive(offset);
    this.commits.through(payload);
    this.handOver({ topic, partition, records, signal: this.assignment.signal });
    payload.resolveOffset(String(records.at(-1)!.offset));
    if (of.prefix.pending > this.mostUnfinished && !this.held.has(name)) this.held.set(name, payload.pause());
  }

  private handOver(batch: InBatch): void {
    try {
      this.hooks!.onRecords(batch);
    } catch (error) {
      // It may have taken some of them already, so it must know records by their ids; the one it can't take alone is parked.
      this.log.warn('taking over a batch failed; its records are handed over one by one', {
        topic: batch.topic,
        partition: batch.partition,
        error,
      });
      for (const record of batch.records) {
        try {
          this.hooks!.onRecords({ ...batch, records: [record] });
        } catch (failure) {
          void this.park(batch.topic, batch.partition, record, failure);
        }
      }
    }
  }

  private revoke(): void {
    this.assignment.abort();
    this.assignment = new AbortController();
    this.commits.left();
    this.prefixes = new Map();
    this.held.clear();
    for (const [topic, partitions] of this.session.health.assigned) this.hooks?.onRevoked(topic, [...partitions]);
  }
}
