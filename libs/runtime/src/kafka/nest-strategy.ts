import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { Server, type CustomTransportStrategy } from '@nestjs/microservices';
import { isObservable, lastValueFrom, throwError, type Observable } from 'rxjs';
import type { BatchConsumer, InBatch } from './port';

/** `@EventPattern(topic, KAFKA_BATCH) onBatch(@Payload() batch: InBatch)` */
export const KAFKA_BATCH = Symbol('kafka-batch');

/**
 * Hands the batches of our consumer to Nest's message handlers. Nest's own Kafka transport handles one message at a time (a
 * quarter of the rate) and tries a poison message for ever.
 */
export class KafkaBatchStrategy extends Server implements CustomTransportStrategy {
  override transportId = KAFKA_BATCH;

  constructor(private readonly consumer: BatchConsumer) {
    super();
  }

  listen(ready: (error?: unknown) => void): void {
    this.consumer.run([...this.messageHandlers.keys()], (batch) => this.dispatch(batch)).then(() => ready(), ready);
  }

  close(): Promise<void> {
    return this.consumer.stop();
  }

  on(): never {
    throw new Error('a batch consumer has no client events; read its health instead');
  }

  unwrap<T>(): T {
    return this.consumer as T;
  }

  private async dispatch(batch: InBatch): Promise<void> {
    const handler = this.messageHandlers.get(batch.topic);
    if (!handler) throw new Error(`no handler for ${batch.topic}`);
    const result: unknown = await handler(batch, batch);
    if (isObservable(result)) await lastValueFrom(result as Observable<unknown>, { defaultValue: undefined });
  }
}

/**
 * Must stand on every controller with batch handlers: `@UseFilters(KeepErrors)`. Without it Nest hands the consumer
 * `{status: 'error', message: 'Internal server error'}` instead of the error, and whether trying again helps is lost.
 */
@Catch()
export class KeepErrors implements ExceptionFilter {
  catch(error: unknown, _host: ArgumentsHost): Observable<never> {
    return throwError(() => error);
  }
}
