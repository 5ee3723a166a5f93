import { recipientHashOf, uuidText } from '#contracts/ids';
import type { Codec } from '#contracts/codec';
import type { ExecutionDue } from '#contracts/events';
import type { Clock } from '#runtime/clock';
import type { InBatch, InRecord } from '#runtime/kafka/port';
import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import type { Found, MessageSource, Missing } from './audience/message-source';
import type { Lanes } from './lane/lanes';
import type { LaneMessage, Origin } from './lane/lane-message';
import type { NumberLane } from './lane/number-lane';
import type { NumberDirectory } from './numbers/number-directory';
import type { DueItem, GatePort } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

export interface TakeRecordsOptions {
  codec: Codec;
  clock: Clock;
  log: Log;
  lanes: Lanes;
  numbers: NumberDirectory;
  source: MessageSource;
  gate: Pick<GatePort, 'parkRecord'>;
  /** Reads the directory again now; several callers share one reading. */
  refreshNumbers(): Promise<void>;
  /** Never sent, visibly: its content or its recipient does not exist. */
  refuse(item: DueItem, reason: Missing['missing']): Promise<void>;
  enqueue(lane: NumberLane, message: LaneMessage): void;
  finished(topic: string, partition: number, offset: bigint): void;
  onReceived(numberId: string): void;
}

const AGAIN_MS = [50, 100, 200, 500, 1_000];

/** From Kafka's records, and from waiting rows, into the lanes of their numbers. Returns at once; reading goes on behind it. */
export class TakeRecords {
  constructor(private readonly options: TakeRecordsOptions) {}

  onRecords(batch: InBatch): void {
    const receivedAt = this.options.clock.nowMs();
    for (const record of batch.records) {
      let due: ExecutionDue;
      try {
        const { name, event } = this.options.codec.decode(record.value);
        if (name !== 'ExecutionDue') throw new Error(`${name} on the topic of executions`);
        due = event;
      } catch {
        void this.park(batch, record, 'undecodable');
        continue;
      }
      const numberId = uuidText(due.numberId);
      const item: DueItem = {
        occurrenceId: due.occurrenceId,
        scheduleId: uuidText(due.scheduleId),
        revision: due.revision,
        numberId,
        dueAt: due.dueAt,
        validUntil: due.validUntil,
        priority: due.priority,
        position: due.position,
        record: { key: record.key ?? due.occurrenceId, value: record.value },
      };
      const { topic, partition } = batch;
      const origin: Origin = { from: 'kafka', topic, partition, offset: record.offset, releasedAt: due.releasedAt };
      const traceparent = record.headers.traceparent ?? null;
      const lane = this.laneOf(numberId);
      this.options.onReceived(numberId);
      if (lane) this.take(lane, item, origin, traceparent, receivedAt);
      else void this.placeLater(batch, record, { item, origin, traceparent, receivedAt });
    }
  }

  /** A message that passes the gate next, when its content and its recipient are at hand. */
  take(lane: NumberLane, item: DueItem, origin: Origin, traceparent: string | null, receivedAt: number): void {
    const ref = { ...item, recipientHash: recipientHashOf(item.occurrenceId) };
    const found = this.options.source.find(ref);
    if (!(found instanceof Promise)) {
      if ('missing' in found) void this.refuse(lane, item, origin, found.missing);
      else this.options.enqueue(lane, { item, priority: item.priority, origin, traceparent, receivedAt, found });
      return;
    }
    const { ownership } = lane;
    lane.loading++;
    void this.loaded(lane, ownership, item, found).then((loaded) => {
      if (lane.ownership !== ownership || loaded === null) return;
      lane.loading--;
      if ('missing' in loaded) void this.refuse(lane, item, origin, loaded.missing);
      else this.options.enqueue(lane, { item, priority: item.priority, origin, traceparent, receivedAt, found: loaded });
    });
  }

  /** Null when the partition went meanwhile. */
  private async loaded(
    lane: NumberLane,
    ownership: number,
    item: DueItem,
    first: Promise<Found | Missing>,
  ): Promise<Found | Missing | null> {
    let reading: Found | Missing | Promise<Found | Missing> = first;
    for (let attempt = 0; lane.ownership === ownership; attempt++) {
      try {
        return await reading;
      } catch (error) {
        if (attempt % 20 === 0) this.options.log.warn('contents and recipients can not be read; trying again', { error });
        await pause(AGAIN_MS[Math.min(attempt, AGAIN_MS.length - 1)]!);
        reading = this.options.source.find({ ...item, recipientHash: recipientHashOf(item.occurrenceId) });
      }
    }
    return null;
  }

  private async refuse(lane: NumberLane, item: DueItem, origin: Origin, reason: Missing['missing']): Promise<void> {
    const { ownership } = lane;
    for (let attempt = 0; lane.ownership === ownership; attempt++) {
      try {
        await this.options.refuse(item, reason);
        if (origin.from === 'kafka') this.options.finished(origin.topic, origin.partition, origin.offset);
        return;
      } catch (error) {
        if (attempt % 20 === 0) this.options.log.warn('a refusal can not be recorded; trying again', { reason, error });
        await pause(AGAIN_MS[Math.min(attempt, AGAIN_MS.length - 1)]!);
      }
    }
  }

  private laneOf(numberId: string): NumberLane | undefined {
    const { lanes, numbers } = this.options;
    const known = lanes.get(numberId);
    if (known && known.block !== 'not_owned') return known;
    const number = numbers.get(numberId);
    return number && lanes.owns(number) ? lanes.of(number) : undefined;
  }

  /** The number is new to us: the directory is read again, and only then the record has no place. */
  private async placeLater(
    batch: InBatch,
    record: InRecord,
    { item, origin, traceparent, receivedAt }: { item: DueItem; origin: Origin; traceparent: string | null; receivedAt: number },
  ): Promise<void> {
    for (let attempt = 0; !batch.signal.aborted; attempt++) {
      try {
        await this.options.refreshNumbers();
        if (batch.signal.aborted) return;
        const lane = this.laneOf(item.numberId);
        if (lane) return this.take(lane, item, origin, traceparent, receivedAt);
        return await this.park(batch, record, this.options.numbers.get(item.numberId) ? 'wrong_partition' : 'unknown_number');
      } catch (error) {
        if (attempt % 20 === 0) this.options.log.warn('numbers can not be read; trying again', { error });
        await pause(AGAIN_MS[Math.min(attempt, AGAIN_MS.length - 1)]!, batch.signal);
      }
    }
  }

  private async park(batch: InBatch, record: InRecord, reason: string): Promise<void> {
    senderMetrics.parked.add(1, { reason });
    this.options.log.error('a record has no place and is parked; the scheduler releases its message again', {
      reason,
      topic: batch.topic,
      partition: batch.partition,
      offset: record.offset,
    });
    for (let attempt = 0; !batch.signal.aborted; attempt++) {
      try {
        await this.options.gate.parkRecord({ key: record.key, value: record.value, reason });
        this.options.finished(batch.topic, batch.partition, record.offset);
        return;
      } catch (error) {
        if (attempt % 20 === 0) this.options.log.warn('a record can not be parked; trying again', { error });
        await pause(AGAIN_MS[Math.min(attempt, AGAIN_MS.length - 1)]!, batch.signal);
      }
    }
  }
}
