import { TraceFlags, type Span } from '@opentelemetry/api';
import type { Codec } from '#contracts/codec';
import { formatId } from '#contracts/ids';
import { partitionFor } from '#contracts/murmur2';
import type { BatchProducer, OutRecord } from '#runtime/kafka/port';
import type { Log } from '#runtime/log';
import { counter, histogram } from '#runtime/metrics';
import type { Database } from '#runtime/postgres/database';
import { formatTraceparent, parseTraceparent, startLinked } from '#runtime/trace-context';
import { executionRecords } from './kafka/execution-records';
import { METRICS } from './metric-names';
import type { Look } from './planning/next-look';
import { choosePositions, isWhole, type Slice } from './planning/slice';
import { RecipientSets } from './postgres/recipient-sets';
import { advanceSlices, pickSlices, setAside, type Handed, type Picked, type PickLimits } from './postgres/slice-rows';

export interface ReleaseSettings {
  instanceId: string;
  executionsTopic: string;
  /** Of the executions topic, as the broker says. */
  partitions: number;
  checkAfterMs: number;
  limits: PickLimits;
}

/** Slices that are leased to this process and not produced yet. */
export interface Release {
  picked: Picked;
  holder: string;
  /** Monotonic instant at which they were picked. */
  pickedAtMs: number;
}

const released = counter(METRICS.released, 'Messages handed over to their senders');
const failures = counter(METRICS.failures, 'Slices that could not be produced; they are released again');
const lag = histogram(
  METRICS.lagSeconds,
  'From the due instant until the broker acknowledged the first of a slice, first releases only',
);
const pickSeconds = histogram(METRICS.pickSeconds, 'Looking at the due index and picking slices');

/**
 * Hands due messages over to the senders: pick (leases numbers), produce, advance. Dying between produce and advance releases the
 * same slices again, which the gate recognises; credit and cursors are untouched until then.
 */
export class ReleaseDue {
  private readonly recipientSets: RecipientSets;
  private sequence = 0;

  constructor(
    private readonly database: Database,
    private readonly producer: BatchProducer,
    private readonly codec: Codec,
    private readonly settings: ReleaseSettings,
    private readonly log: Log,
    /** For reads that may take seconds. */
    patientDatabase: Database = database,
  ) {
    this.recipientSets = new RecipientSets(patientDatabase);
  }

  /** One whole step: what is due is woken, one round of slices is released. */
  async releaseOnce(): Promise<Look & { released: number }> {
    const release = await this.pick();
    return { ...release.picked.look, released: (await this.finish(release)).released };
  }

  /**
   * PostgreSQL plans both functions anew on each connection, which takes 45 ms: done for `connections` of them at once, before an
   * instant depends on it. Picks nothing.
   */
  async warmUp(connections: number): Promise<void> {
    const nothing = { ...this.settings.limits, wake: 0, numbers: 0, records: 0 };
    await Promise.all(
      Array.from({ length: connections }, async () => {
        await pickSlices(this.database, 'warm-up', nothing);
        await advanceSlices(this.database, 'warm-up', [], this.settings.checkAfterMs);
      }),
    );
  }

  async pick(): Promise<Release> {
    // A holder is one release and not the process: a lease that ran out may be taken by the next release of the same process.
    const holder = `${this.settings.instanceId}/${++this.sequence}`;
    const begun = performance.now();
    const picked = await pickSlices(this.database, holder, this.settings.limits);
    pickSeconds.record((performance.now() - begun) / 1000);
    return { picked, holder, pickedAtMs: performance.now() };
  }

  /** Produces what was picked and moves the cursors; answers how many messages were handed over, and whether some could not be. */
  async finish({ picked, holder, pickedAtMs }: Release): Promise<{ released: number; failed: boolean }> {
    const parts = await Promise.all(
      this.withoutWaiting(picked).map(async (part) => {
        const handed = await this.produce(part);
        recordLag(part, performance.now() - pickedAtMs);
        await advanceSlices(this.database, holder, handed, this.settings.checkAfterMs);
        return handed;
      }),
    );
    const handed = parts.flat();
    const count = handed.reduce((sum, each) => sum + each.released, 0);
    released.add(count);
    return { released: count, failed: handed.some(({ slice, until }) => until === slice.from) };
  }

  /** Two parts where some slices have to read first: the others don't wait for them. A number is in one part, as its lease is one. */
  private withoutWaiting(picked: Picked): Picked[] {
    const slow = new Set<string>();
    for (const slice of picked.slices) if (!this.recipientSets.isAtHand(slice)) slow.add(slice.numberId.toString('hex'));
    const isSlow = ({ numberId }: Slice) => slow.has(numberId.toString('hex'));
    const parts = [picked.slices.filter((slice) => !isSlow(slice)), picked.slices.filter(isSlow)];
    return parts.filter((slices) => slices.length > 0).map((slices) => ({ ...picked, slices }));
  }

  /** Produces and stops there, as a process does that dies before its cursors move. */
  async produce(picked: Picked): Promise<Handed[]> {
    const byPartition = new Map<number, { records: OutRecord[]; handed: Handed[] }>();
    const spans: Span[] = [];
    const unproduced: Handed[] = [];
    const broken: Slice[] = [];
    for (const slice of picked.slices) {
      if (!isWhole(slice)) {
        broken.push(slice);
        unproduced.push({ slice, until: slice.from, released: 0 });
        continue;
      }
      const { positions, until } = choosePositions(slice, await this.recipientSets.leftOutOf(slice));
      const partition = partitionFor(slice.providerIdentity, this.settings.partitions);
      let send = byPartition.get(partition);
      if (!send) byPartition.set(partition, (send = { records: [], handed: [] }));
      const span = this.startSpan(slice, positions.length);
      if (span) spans.push(span);
      const traceparent = span?.isRecording() ? formatTraceparent(span.spanContext()) : undefined;
      const records = executionRecords(this.codec, slice, positions, picked.nowMs, traceparent);
      send.records = send.records.length === 0 ? records : send.records.concat(records);
      send.handed.push({ slice, until, released: positions.length });
    }
    if (broken.length > 0) await this.reportBroken(broken);
    const sent = await Promise.all([...byPartition].map(([partition, send]) => this.send(partition, send)));
    for (const span of spans) span.end();
    return sent.flat().concat(unproduced);
  }

  private async send(partition: number, { records, handed }: { records: OutRecord[]; handed: Handed[] }): Promise<Handed[]> {
    if (records.length === 0) return handed;
    try {
      await this.producer.send(this.settings.executionsTopic, partition, records);
      return handed;
    } catch (error) {
      failures.add(handed.length);
      this.log.warn('due messages could not be handed over; their cursors stay and they are released again', {
        topic: this.settings.executionsTopic,
        partition,
        count: records.length,
        error,
      });
      return handed.map(({ slice }) => ({ slice, until: slice.from, released: 0 }));
    }
  }

  /** A trace that was not sampled when the schedule came costs nothing now: each header is a quarter of a record's price. */
  private startSpan(slice: Slice, count: number): Span | undefined {
    const origin = slice.traceparent === null ? undefined : parseTraceparent(slice.traceparent);
    if (!origin || !(origin.traceFlags & TraceFlags.SAMPLED)) return undefined;
    return startLinked('release', slice.traceparent!, {
      'punctual.schedule_id': formatId('sch', slice.scheduleId),
      'punctual.run_id': formatId('run', slice.runId),
      'punctual.origin_trace_id': origin.traceId,
      'punctual.position': slice.from,
      'messaging.batch.message_count': count,
    });
  }

  private async reportBroken(broken: Slice[]): Promise<void> {
    await setAside(
      this.database,
      broken.map(({ runId }) => runId),
    );
    for (const { runId, scheduleId, from, until } of broken)
      this.log.error('chunks of an audience are missing; the run is set aside and looked at again every minute', {
        runId: formatId('run', runId),
        scheduleId: formatId('sch', scheduleId),
        from,
        until,
      });
  }
}

/** By PostgreSQL's clock, and how long the rest took by ours. */
function recordLag({ slices, nowMs }: Picked, sinceMs: number): void {
  for (const { from, pass, dueAt } of slices)
    if (from === 0 && pass === 0) lag.record(Math.max(0, nowMs + sinceMs - dueAt) / 1000);
}
