import { Controller, Inject, UseFilters, type Type } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import type { Codec } from '#contracts/codec';
import { topicName } from '#contracts/topics';
import type { InBatch } from '#runtime/kafka/port';
import { PunctualError } from '#runtime/errors';
import { KafkaBatchStrategy, KeepErrors } from '#runtime/kafka/nest-strategy';
import type { BatchConsumer } from '#runtime/kafka/port';
import { weightOf, type ReadRecord } from '../projection/items';
import type { Projector } from '../projection/projector';
import { readRecord, type OnIgnored } from '../projection/read-record';

/** One consumer group each: webhooks come in bursts that must not hold up what senders say. */
export const WEBHOOKS = Symbol('webhooks');
export const FACTS = Symbol('facts');

export const TOPICS_OF = {
  [WEBHOOKS]: ['webhooks'],
  [FACTS]: ['runs', 'deliveries', 'schedules'],
} as const;

/** Nest gives every strategy the handlers of its own transport id. */
export function strategyFor(group: typeof WEBHOOKS | typeof FACTS, consumer: BatchConsumer): KafkaBatchStrategy {
  const strategy = new KafkaBatchStrategy(consumer);
  strategy.transportId = group;
  return strategy;
}

/** Statuses, or other facts, that are projected together at most, as far as one partition is concerned. */
const PART_WEIGHT = 500;

/** Reads batches and hands them to the projection. */
export class BatchReader {
  constructor(
    private readonly codec: Codec,
    private readonly tokenKey: Buffer,
    private readonly projector: Projector,
    private readonly onIgnored: OnIgnored,
  ) {}

  /** In parts, one committed after the other: a batch of large webhooks may hold a hundred thousand statuses. */
  async project({ topic, partition, records, signal }: InBatch): Promise<void> {
    let part: ReadRecord[] = [];
    let weight = 0;
    for (const record of records) {
      const { offset, timestampMs } = record;
      const item = readRecord(this.codec, this.tokenKey, record, this.onIgnored);
      part.push({ offset, timestampMs, item });
      weight += weightOf(item);
      if (weight < PART_WEIGHT) continue;
      await this.projector.add({ topic, partition, records: part });
      part = [];
      weight = 0;
      if (signal.aborted) throw new StoppedError();
    }
    if (part.length > 0) await this.projector.add({ topic, partition, records: part });
  }
}

/** The rest of the batch belongs to whoever has the partition next. */
class StoppedError extends PunctualError {
  constructor() {
    super('partition_taken_away', 'The partition was taken away in the middle of a batch; its next owner goes on.', {
      retriable: true,
    });
  }
}

/** Topic names hold the installation's prefix, so the controllers are made when it is known. */
export function batchControllers(prefix: string): Type[] {
  return [WEBHOOKS, FACTS].flatMap((group) =>
    TOPICS_OF[group as keyof typeof TOPICS_OF].map((topic) => batchController(topicName(prefix, topic), group)),
  );
}

function batchController(topic: string, group: symbol): Type {
  @Controller()
  @UseFilters(KeepErrors)
  class BatchController {
    constructor(@Inject(BatchReader) private readonly reader: BatchReader) {}

    @EventPattern(topic, group)
    onBatch(@Payload() batch: InBatch): Promise<void> {
      return this.reader.project(batch);
    }
  }
  return BatchController;
}
