import { SpanKind } from '@opentelemetry/api';
import type { Producer } from 'kafkajs';
import { PunctualError } from '../errors';
import { silentLog, type Log } from '../log';
import { counter, histogram } from '../metrics';
import { pause } from '../pause';
import { settleWithin } from '../settle-within';
import { ATTRIBUTES, METRICS } from '../telemetry-names';
import { startBatchSpan, within } from '../trace-context';
import { kafkaClient, RETRY, waitForKafka, type KafkaOptions } from './connection';
import { PartitionQueue, type Batch } from './partition-queue';
import type { BatchProducer, OutRecord } from './port';

/** The records may or may not be in the log: send them again, consumers know duplicates by their ids. */
export class KafkaSendError extends PunctualError {
  constructor(topic: string, partition: number, cause: unknown) {
    super('kafka_send_failed', `${topic}/${partition} did not acknowledge; nothing is lost as long as the caller sends again.`, {
      retriable: true,
      cause,
    });
  }
}

export interface ProducerOptions extends KafkaOptions {
  /** How often a batch is sent anew with a fresh producer before its callers are told; 3 if absent. Each try is 40 retries of the client, for as long as `answerWithinMs`. */
  freshProducers?: number;
  /** After how many milliseconds without any answer a producer is given up and the batch goes to a fresh one; 25,000 if absent. */
  answerWithinMs?: number;
}

const sent = counter(METRICS.kafkaSent, 'Records acknowledged by the brokers');
const failures = counter(METRICS.kafkaSendFailures, 'Batches whose callers were told that they failed');
const replaced = counter(METRICS.kafkaProducersReplaced, 'Producers that were replaced after an error');
const sendSeconds = histogram(METRICS.kafkaSendSeconds, 'From handing a batch to the client until its acknowledgement');

class UnacknowledgedError extends Error {}

/**
 * The same batch with the same producer has the same sequence numbers, so a broker that has it already drops the repetition.
 * The client gives up at once on some errors that a moment cures: "Broker not connected" while another partition's send is just
 * reconnecting (met in one of 60 lost connections). Not repeated: errors of the sequence itself, and what the client has
 * already tried for 20 s.
 */
function mayRepeat(error: unknown): boolean {
  if (error instanceof UnacknowledgedError) return false;
  const { name, type, cause } = error as { name?: string; type?: string; cause?: { type?: string } };
  const kind = type ?? cause?.type ?? '';
  return (
    name !== 'KafkaJSNumberOfRetriesExceeded' && !/SEQUENCE|PRODUCER|FENCED|EPOCH|TOO_LARGE|RECORD_LIST|AUTHORIZATION/.test(kind)
  );
}

const SAME_PRODUCER_REPEATS = 5;

/**
 * A broker's death takes up to 10 s to be noticed and the client's own retries take 20 s. What has no answer after that may
 * wait for one that was forgotten with its connection, and its partition would stand still for good.
 */
const ANSWER_WITHIN_MS = 25_000;

/** Not connected yet; `connect()` waits for the brokers, and so does every `send()`. */
export function openProducer(options: ProducerOptions): BatchProducer {
  return new CoalescingProducer(options);
}

class CoalescingProducer implements BatchProducer {
  private readonly queues = new Map<string, PartitionQueue>();
  private readonly stop = new AbortController();
  private readonly outstanding = new Set<Promise<void>>();
  private readonly log: Log;
  private current: Promise<Producer> | undefined;

  constructor(private readonly options: ProducerOptions) {
    this.log = (options.log ?? silentLog).with({ part: 'kafka-producer' });
  }

  async connect(): Promise<void> {
    await this.producer();
  }

  send(topic: string, partition: number, records: OutRecord[]): Promise<void> {
    if (this.stop.signal.aborted)
      return Promise.reject(new KafkaSendError(topic, partition, new Error('the producer is closed')));
    const name = `${topic}/${partition}`;
    let queue = this.queues.get(name);
    if (!queue) this.queues.set(name, (queue = new PartitionQueue()));
    const done = queue.add(records);
    if (!queue.busy && !queue.empty) {
      queue.busy = true;
      // One turn of the event loop later: what is sent in the same turn goes out together.
      setImmediate(() => this.track(this.drain(topic, partition, queue)));
    }
    return done;
  }

  async close(): Promise<void> {
    this.stop.abort();
    // Handed to the client before the close: their callers get a true answer.
    const patience = new AbortController();
    await Promise.race([Promise.allSettled([...this.outstanding]), pause(5_000, patience.signal)]);
    patience.abort();
    for (const queue of this.queues.values()) queue.failAll(new KafkaSendError('(any)', -1, new Error('the producer is closed')));
    const producer = await this.current?.catch(() => undefined);
    await producer?.disconnect().catch(() => undefined);
  }

  private track(work: Promise<void>): void {
    this.outstanding.add(work);
    void work.finally(() => this.outstanding.delete(work));
  }

  /** Never two sends at once for one topic-partition: the second one would take the sequence numbers of a first whose answer was lost, and vanish. */
  private async drain(topic: string, partition: number, queue: PartitionQueue): Promise<void> {
    while (!queue.empty) {
      const batch = queue.take();
      try {
        await this.sendBatch(topic, partition, batch);
        batch.acknowledge();
      } catch (error) {
        failures.add(1, { topic });
        batch.fail(new KafkaSendError(topic, partition, error));
      }
    }
    queue.busy = false;
  }

  private async sendBatch(topic: string, partition: number, batch: Batch): Promise<void> {
    const span = startBatchSpan(
      `send ${topic}`,
      SpanKind.PRODUCER,
      {
        [ATTRIBUTES.messagingSystem]: 'kafka',
        [ATTRIBUTES.destination]: topic,
        [ATTRIBUTES.partition]: String(partition),
        [ATTRIBUTES.operationName]: 'send',
        [ATTRIBUTES.operationType]: 'send',
        [ATTRIBUTES.batchSize]: batch.records.length,
      },
      (function* () {
        for (const { headers } of batch.records) yield headers?.traceparent;
      })(),
    );
    await within(span, () => this.sendUntilAcknowledged(topic, partition, batch.records));
  }

  private async sendUntilAcknowledged(topic: string, partition: number, records: OutRecord[]): Promise<void> {
    const mostProducers = this.options.freshProducers ?? 3;
    for (let producers = 0, repeats = 0; ;) {
      const using = this.producer();
      try {
        await this.sendOnce(await using, topic, partition, records);
        return;
      } catch (error) {
        if (this.stop.signal.aborted) throw error;
        const details = { topic, partition, count: records.length, error };
        if (mayRepeat(error) && repeats < SAME_PRODUCER_REPEATS) {
          repeats++;
          this.log.debug('sending failed; the same records go out again', details);
          await pause(50 * repeats, this.stop.signal);
          continue;
        }
        // After giving up, the client takes the batch's sequence numbers back. If the log has the batch all the same, any other
        // batch under them would pass for its repetition and be dropped: this producer must not send to the partition again.
        this.replace(using);
        if (producers >= mostProducers) throw error;
        producers++;
        repeats = 0;
        this.log.warn('sending failed; the same records go out again with a new producer and may come twice', {
          ...details,
          attempt: producers,
        });
        await pause(100 * 2 ** producers, this.stop.signal);
      }
    }
  }

  private async sendOnce(producer: Producer, topic: string, partition: number, records: OutRecord[]): Promise<void> {
    const started = performance.now();
    const answering = producer.send({
      topic,
      acks: -1,
      messages: records.map(({ key, value, headers }) => ({ key, value, headers, partition })),
    });
    const patienceMs = this.options.answerWithinMs ?? ANSWER_WITHIN_MS;
    const answers = await settleWithin(answering, patienceMs, () => new UnacknowledgedError(`no answer within ${patienceMs} ms`));
    // A client that lost its way answers without having sent: only the broker's own word for this partition counts.
    const answer = answers.find((each) => each.topicName === topic && each.partition === partition);
    if (!answer || answer.errorCode !== 0)
      throw new UnacknowledgedError(`the answer has no acknowledgement for ${topic}/${partition}`);
    sent.add(records.length, { topic });
    sendSeconds.record((performance.now() - started) / 1000, { topic });
  }

  private producer(): Promise<Producer> {
    if (!this.current) {
      const opening = this.openOne();
      this.current = opening;
      opening.catch(() => {
        if (this.current === opening) this.current = undefined;
      });
    }
    return this.current;
  }

  private async openOne(): Promise<Producer> {
    await waitForKafka(this.options, [], this.stop.signal);
    this.stop.signal.throwIfAborted();
    const producer = kafkaClient(this.options).producer({
      idempotent: true,
      allowAutoTopicCreation: false,
      retry: RETRY,
      // The partition is on every record; a client that guessed another would break the order.
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition!,
    });
    await producer.connect();
    return producer;
  }

  /** Sends of other partitions that are out on the old one end there; it is closed when they have. */
  private replace(old: Promise<Producer>): void {
    if (this.current !== old) return;
    this.current = undefined;
    replaced.add(1);
    void old
      .then(async (producer) => {
        await pause(60_000, this.stop.signal);
        await producer.disconnect();
      })
      .catch(() => undefined);
  }
}
