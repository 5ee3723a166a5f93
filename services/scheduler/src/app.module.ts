import { Module, type DynamicModule } from '@nestjs/common';
import { schedulesController } from './kafka/schedules-controller';
import { PlanSchedules } from './plan-schedules';

@Module({})
export class AppModule {
  static of(schedulesTopic: string, planSchedules: PlanSchedules): DynamicModule {
    return {
      module: AppModule,
      controllers: [schedulesController(schedulesTopic)],
      providers: [{ provide: PlanSchedules, useValue: planSchedules }],
    };
  }
}
