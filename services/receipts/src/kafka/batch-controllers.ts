import { Controller, Inject, UseFilters, type Type } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import type { Codec } from '#contracts/codec';
import { topicName } from '#contracts/topics';
import type { InBatch } from '#runtime/kafka/port';
import { KafkaBatchStrategy, KeepErrors } from '#runtime/kafka/nest-strategy';
import type { BatchConsumer } from '#runtime/kafka/port';
import type { ReadBatch } from '../projection/items';
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

/** Reads batches and hands them to the projection. */
export class BatchReader {
  constructor(
    private readonly codec: Codec,
    private readonly tokenKey: Buffer,
    private readonly projector: Projector,
    private readonly onIgnored: OnIgnored,
  ) {}

  async project({ topic, partition, records }: InBatch): Promise<void> {
    const batch: ReadBatch = {
      topic,
      partition,
      records: records.map(({ offset, timestampMs, value }) => ({
        offset,
        timestampMs,
        item: readRecord(this.codec, this.tokenKey, value, this.onIgnored),
      })),
    };
    await this.projector.add(batch);
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
