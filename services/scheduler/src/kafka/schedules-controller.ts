import { Controller, Inject, UseFilters, type Type } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { KAFKA_BATCH, KeepErrors } from '#runtime/kafka/nest-strategy';
import type { InBatch } from '#runtime/kafka/port';
import { PlanSchedules } from '../plan-schedules';

/** The topic's name carries the installation's prefix, so the class is made when that is known. */
export function schedulesController(topic: string): Type {
  @Controller()
  @UseFilters(KeepErrors)
  class SchedulesController {
    constructor(@Inject(PlanSchedules) private readonly planSchedules: PlanSchedules) {}

    @EventPattern(topic, KAFKA_BATCH)
    async onBatch(@Payload() batch: InBatch): Promise<void> {
      await this.planSchedules.planBatch(batch);
    }
  }
  return SchedulesController;
}
