import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import { SESSION_TIMEOUT_MS } from '#runtime/kafka/consumer-session';
import type { HandoverConsumer } from '#runtime/kafka/port';
import { retrying } from '#runtime/postgres/retrying';
import type { ApplyEffects } from './apply-effects';
import type { Lanes } from './lane/lanes';
import type { LaneMessage } from './lane/lane-message';
import type { GatePort } from './postgres/gate-port';
import type { ProbeHeldNumbers } from './probe-held-numbers';
import type { ProviderAdapter } from './providers/provider';
import type { ResultRecorder } from './record-results';
import type { SendSlots } from './redis/send-slots';
import type { RecoverClaims } from './recover-claims';
import type { RefreshNumbers } from './refresh-numbers';
import { repeat } from './repeat';
import type { ReportCredit } from './report-credit';
import type { SendLoop } from './send-loop';
import type { SendMessage } from './send-message';
import { observeLanes, type LaneFigures } from './sender-metrics';
import type { SweepClaims } from './sweep-claims';
import type { TakeRecords } from './take-records';
import type { WakeWaiting } from './wake-waiting';

/** Within this nobody else can have our partitions: the session time-out, less a second for what we don't see. */
export const HEARTBEAT_FRESH_MS = SESSION_TIMEOUT_MS - 1_000;

export interface SenderParts {
  clock: Clock;
  log: Log;
  executionsTopic: string;
  consumer: HandoverConsumer;
  lanes: Lanes;
  slots: SendSlots;
  adapter: ProviderAdapter;
  gate: GatePort;
  records: TakeRecords;
  loop: SendLoop;
  sending: SendMessage;
  results: ResultRecorder;
  effects: ApplyEffects;
  refresh: RefreshNumbers;
  credit: ReportCredit;
  waking: WakeWaiting;
  sweeping: SweepClaims;
  probing: ProbeHeldNumbers;
  recovering: RecoverClaims;
  healthProbeMs: number;
  /** Tests with short deadlines sweep more often. */
  sweepEveryMs: number;
}

const CREDIT_EVERY_MS = 200;
const NUMBERS_EVERY_MS = 1_000;
const WAKE_EVERY_MS = 250;
const RECOVER_EVERY_MS = 500;
const SWEEP_WAITING_EVERY_MS = 2_000;
const PARTITIONS_EVERY_MS = 6 * 3_600_000;

/** The engine as a whole: what starts when, what repeats, and how it ends without making anything uncertain. */
export class Sender {
  private readonly stopping = new AbortController();
  private loops: Array<Promise<void>> = [];
  private draining = false;
  private endObservation: () => void = () => undefined;

  constructor(readonly parts: SenderParts) {}

  get isDraining(): boolean {
    return this.draining;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { parts } = this;
    parts.slots.onRestart(() => {
      parts.lanes.dropSlots();
      parts.loop.wake();
    });
    this.endObservation = observeLanes(() => ({
      ...this.figures(),
      redisAvailable: parts.slots.available,
      unrecorded: parts.results.unrecorded,
    }));
    await retrying(() => parts.gate.ensureClaimPartitions(), { idempotent: true, attempts: Number.POSITIVE_INFINITY, signal });
    await retrying(() => parts.refresh.refreshOnce(), { idempotent: true, attempts: Number.POSITIVE_INFINITY, signal });
    this.repeat('sweeping claims', parts.sweepEveryMs, () => parts.sweeping.sweepOnce());
    this.repeat('sweeping waits', SWEEP_WAITING_EVERY_MS, () => parts.sweeping.sweepWaitingOnce());
    this.repeat('making partitions', PARTITIONS_EVERY_MS, () => parts.gate.ensureClaimPartitions());
    this.repeat('reading numbers', NUMBERS_EVERY_MS, () => parts.refresh.refreshOnce());
    this.repeat('waking messages', WAKE_EVERY_MS, () => parts.waking.wakeOnce());
    this.repeat('reporting credit', CREDIT_EVERY_MS, () => parts.credit.reportOnce());
    this.repeat('recovering claims', RECOVER_EVERY_MS, () => parts.recovering.recoverOnce());
    this.repeat('probing held numbers', parts.healthProbeMs, () => parts.probing.probeOnce());
    await parts.consumer.run([parts.executionsTopic], {
      onRecords: (batch) => parts.records.onRecords(batch),
      onAssigned: (_topic, partitions) => this.assigned(partitions),
      onRevoked: (_topic, partitions) => this.revoked(partitions),
    });
  }

  /** Takes nothing new, hands back what was not written, waits for the calls that are out, and leaves the group. */
  async drain(): Promise<void> {
    const { credit, loop, sending, consumer, results, log } = this.parts;
    this.draining = true;
    sending.drain();
    loop.stop();
    await credit
      .giveUp()
      .catch((error: unknown) => log.warn('the credit could not be taken back; it is forgotten in 5 s', { error }));
    await consumer.stop();
    // Lanes that were never revoked (the group was never joined) have claims too.
    this.revoked(this.parts.lanes.assignedPartitions);
    while (sending.inFlight > 0 || this.claiming > 0) await pause(10);
    while (results.unrecorded > 0) {
      await results.recordOnce();
      if (results.unrecorded > 0) await pause(20);
    }
    await this.parts.effects.settled();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.loops);
    this.endObservation();
    await this.parts.adapter.close();
    await this.parts.slots.close();
  }

  /** The gate has answered: the message is its business now, and Kafka may forget the record. */
  answered({ origin }: LaneMessage): void {
    if (origin.from === 'kafka') this.parts.consumer.finished(origin.topic, origin.partition, origin.offset);
  }

  figures(): LaneFigures {
    const figures = { lanes: 0, queued: 0, claiming: 0, ready: 0, inFlight: 0, blocked: 0, allowedPerSecond: 0 };
    const now = this.parts.clock.monotonicMs();
    for (const lane of this.parts.lanes.all()) {
      if (lane.block !== 'not_owned') figures.lanes++;
      if (lane.block !== null && lane.block !== 'not_owned') figures.blocked++;
      if (lane.active && lane.block === null) figures.allowedPerSecond += lane.pace.rate.at(now);
      figures.queued += lane.loading + lane.queue.size;
      figures.claiming += lane.claiming;
      figures.ready += lane.ready.size;
      figures.inFlight += lane.inFlight;
    }
    return figures;
  }

  private get claiming(): number {
    return this.figures().claiming;
  }

  private assigned(partitions: readonly number[]): void {
    const { lanes, consumer, clock, refresh, loop, log } = this.parts;
    lanes.assign(partitions, clock.monotonicMs() - consumer.health.lastHeartbeatMs);
    log.info('partitions taken over', { count: partitions.length });
    void refresh
      .refreshOnce()
      .then(() => loop.wake())
      .catch(() => undefined);
  }

  private revoked(partitions: readonly number[]): void {
    const waiting: Buffer[] = [];
    for (const dropped of this.parts.lanes.revoke(partitions)) {
      for (const claimed of dropped.claimed) this.parts.sending.notSent(claimed, 'not_ours');
      waiting.push(...dropped.waiting);
    }
    // Best effort: the lease ends by itself as well.
    if (waiting.length > 0) void this.parts.gate.releaseWaiting(waiting).catch(() => undefined);
  }

  private repeat(name: string, everyMs: number, step: () => Promise<unknown>): void {
    this.loops.push(repeat({ name, everyMs, step, log: this.parts.log, signal: this.stopping.signal }));
  }
}
