import { Module, type DynamicModule } from '@nestjs/common';
import { BatchReader, batchControllers } from './kafka/batch-controllers';

@Module({})
export class AppModule {
  static of(topicPrefix: string, reader: BatchReader): DynamicModule {
    return {
      module: AppModule,
      controllers: batchControllers(topicPrefix),
      providers: [{ provide: BatchReader, useValue: reader }],
    };
  }
}
