import 'reflect-metadata';
import { Controller, Module, UseFilters } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, Payload } from '@nestjs/microservices';
import { PunctualError } from '../errors';
import { KAFKA_BATCH, KafkaBatchStrategy, KeepErrors } from './nest-strategy';
import type { BatchConsumer, InBatch } from './port';

const seen: string[] = [];

@Controller()
@UseFilters(KeepErrors)
class KeepingController {
  @EventPattern('kept', KAFKA_BATCH)
  async onBatch(@Payload() batch: InBatch): Promise<void> {
    seen.push(`${batch.topic} ${batch.records.length}`);
    if (batch.partition === 1) throw new PunctualError('database_unavailable', 'away', { retriable: true });
  }
}

@Controller()
class PlainController {
  @EventPattern('hidden', KAFKA_BATCH)
  async onBatch(): Promise<void> {
    throw new PunctualError('database_unavailable', 'away', { retriable: true });
  }
}

@Module({ controllers: [KeepingController, PlainController] })
class TestModule {}

let onBatch: (batch: InBatch) => Promise<void>;
let topics: string[] = [];
let stopped = false;
const consumer: BatchConsumer = {
  run: async (given, handler) => {
    topics = given;
    onBatch = handler;
  },
  stop: async () => {
    stopped = true;
  },
  health: { lastFetchMs: 0, lastHeartbeatMs: 0, assigned: new Map() },
};

const batch = (topic: string, partition: number): InBatch => ({
  topic,
  partition,
  records: [],
  signal: new AbortController().signal,
});

it('brings batches to the handlers of their topic, and errors back as they were', async () => {
  const app = await NestFactory.createMicroservice(TestModule, { strategy: new KafkaBatchStrategy(consumer), logger: false });
  await app.listen();
  expect(topics.sort()).toEqual(['hidden', 'kept']);
  await onBatch(batch('kept', 0));
  expect(seen).toEqual(['kept 0']);
  await expect(onBatch(batch('kept', 1))).rejects.toMatchObject({ code: 'database_unavailable', retriable: true });
  await expect(onBatch(batch('other', 0))).rejects.toThrow('no handler');
  // Why the filter must be there: without it the class of the error is lost.
  const hidden = await onBatch(batch('hidden', 0)).catch((error: unknown) => error);
  expect(hidden).not.toBeInstanceOf(PunctualError);
  await app.close();
  expect(stopped).toBe(true);
});
