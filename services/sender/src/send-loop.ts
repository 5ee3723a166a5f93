import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import { ClaimBatches, type Claiming } from './claim-batches';
import type { Lanes } from './lane/lanes';
import type { LaneMessage } from './lane/lane-message';
import type { NumberLane } from './lane/number-lane';
import type { NumberDirectory } from './numbers/number-directory';
import type { HostCircuit } from './outcome/host-circuit';
import type { Verdict } from './postgres/gate-port';
import type { ProviderAdapter } from './providers/provider';
import type { SendSlots, SlotRequest } from './redis/send-slots';
import type { ResultRecorder } from './record-results';
import { senderMetrics } from './sender-metrics';
import type { SendMessage } from './send-message';

export interface SendLoopOptions {
  clock: Clock;
  log: Log;
  lanes: Lanes;
  numbers: NumberDirectory;
  slots: SendSlots;
  claims: ClaimBatches;
  results: ResultRecorder;
  sending: SendMessage;
  adapter: ProviderAdapter;
  circuits: Readonly<Record<'test' | 'live', HostCircuit>>;
  horizonMs: number;
  /** Connections at most per host: more calls than that would only wait, and lose their slots. */
  connections: number;
  deadlineMs: number;
  /** The gate has answered: a message is no longer Kafka's or the waiting table's. */
  onAnswered(message: LaneMessage): void;
}

const IDLE_MS = 1_000;
const WARM_EVERY_MS = 500;
const TYPICAL_CALL_MS = 100;

/**
 * For every lane with work: reserve slots, ask the gate shortly before each slot, write at the slot. One timer for all lanes; the
 * gate's, Redis's and the providers' answers wake it as well.
 */
export class SendLoop {
  private timer: NodeJS.Timeout | undefined;
  private woken = false;
  private stopped = false;
  private reserving = false;
  private readonly inFlight = { test: 0, live: 0 };
  private readonly warmedAt = { test: Number.NEGATIVE_INFINITY, live: Number.NEGATIVE_INFINITY };
  private callMs = TYPICAL_CALL_MS;

  constructor(private readonly options: SendLoopOptions) {}

  /** Something changed: look again in this turn of the event loop. */
  wake(): void {
    if (this.woken || this.stopped) return;
    this.woken = true;
    setImmediate(() => {
      this.woken = false;
      this.run();
    });
  }

  enqueue(lane: NumberLane, message: LaneMessage): void {
    lane.queue.add(message);
    this.options.lanes.active.add(lane);
    this.wake();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  get stoppedClaiming(): boolean {
    return this.stopped;
  }

  /** One look at every lane with work. Answers the monotonic time of the next one. */
  tickOnce(): number {
    const { clock, lanes, claims } = this.options;
    const now = clock.monotonicMs();
    let next = now + IDLE_MS;
    const requests: Array<SlotRequest & { lane: NumberLane }> = [];
    for (const lane of lanes.active) {
      if (!lane.active) {
        lanes.active.delete(lane);
        continue;
      }
      next = Math.min(next, this.work(lane, now, requests));
    }
    if (requests.length > 0 && !this.reserving) void this.reserve(requests);
    return Math.max(next, claims.resumesAt > now ? claims.resumesAt : 0);
  }

  private run(): void {
    if (this.stopped) return;
    clearTimeout(this.timer);
    const next = this.tickOnce();
    this.timer = setTimeout(() => this.run(), Math.max(1, Math.floor(next - this.options.clock.monotonicMs())));
  }

  private work(lane: NumberLane, now: number, requests: Array<SlotRequest & { lane: NumberLane }>): number {
    const { lanes, numbers, claims, results, circuits } = this.options;
    const number = numbers.get(lane.numberId);
    if (lane.block === 'not_owned' || !number) return now + IDLE_MS;
    // The messages of a held number need no slots: the gate keeps them as waiting rows, and the lane is free again.
    if (lane.block === 'held') {
      this.release(lane, 'number_held');
      if (results.accepting) this.claim(lane, lane.queue.size);
      return now + IDLE_MS;
    }
    const circuit = circuits[number.mode];
    if (circuit.isOpen(now)) {
      this.release(lane, 'circuit_open');
      return Math.min(now + IDLE_MS, circuit.openUntil);
    }

    this.releaseOverdue(lane, now);
    let next = now + IDLE_MS;
    while (lane.ready.size > 0 && this.inFlight[number.mode] < this.options.connections) {
      const slot = lane.pace.take(now);
      if (slot === null) break;
      this.inFlight[number.mode]++;
      void this.options.sending.send(lane, number, lane.ready.shift()!, slot, this.options.adapter).finally(() => {
        this.inFlight[number.mode]--;
      });
    }
    if (lane.ready.size > 0) next = Math.min(next, lane.pace.nextAt(now));

    if (results.accepting && claims.resumesAt <= now) {
      const due = lane.pace.slotsUntil(now, now + claims.leadMs);
      this.claim(lane, due - lane.claiming - lane.ready.size);
      if (lane.queue.size > 0) next = Math.min(next, lane.pace.slotBehind(lane.claiming + lane.ready.size) - claims.leadMs);
    } else if (claims.resumesAt > now) next = Math.min(next, claims.resumesAt);

    if (!lane.reserving) {
      const wanted = lane.pace.wanted(now, lane.demand);
      if (wanted > 0) requests.push({ lane, number: lane.providerIdentity, wanted, stepMs: lane.pace.stepMs(now) });
      else if (lane.demand > lane.pace.held) next = Math.min(next, Math.max(now + 1, lane.pace.reserveAt));
    }
    if (lane.pace.spent > 0) {
      senderMetrics.slotsSpent.add(lane.pace.spent);
      lane.pace.spent = 0;
    }
    this.warm(lane, number.mode, now);
    if (!lane.active) lanes.active.delete(lane);
    return next;
  }

  private claim(lane: NumberLane, most: number): void {
    if (most <= 0) return;
    for (const message of lane.queue.take(most)) {
      lane.claiming++;
      this.options.claims.add({ lane, message, ownership: lane.ownership });
    }
  }

  /** What the gate said about one message. */
  onVerdict({ lane, message, ownership }: Claiming, verdict: Verdict, deadlineAt: number): void {
    lane.claiming--;
    senderMetrics.verdicts.add(1, { kind: verdict.kind, reason: reasonOf(verdict) });
    this.options.onAnswered(message);
    if (verdict.kind === 'claimed') {
      const claimed = { message, claim: verdict, deadlineAt };
      // The partition went while we asked: somebody else's pace rules now.
      if (lane.ownership !== ownership || this.stopped) this.options.sending.notSent(claimed, 'not_ours');
      else {
        lane.ready.push(claimed);
        this.options.lanes.active.add(lane);
      }
    }
    this.wake();
  }

  onUnanswered(claiming: readonly Claiming[]): void {
    const lanes = new Map<NumberLane, LaneMessage[]>();
    for (const { lane, message, ownership } of claiming) {
      lane.claiming--;
      if (lane.ownership !== ownership) continue;
      const back = lanes.get(lane);
      if (back) back.push(message);
      else lanes.set(lane, [message]);
    }
    for (const [lane, messages] of lanes) {
      lane.queue.putBack(messages);
      this.options.lanes.active.add(lane);
    }
    this.wake();
  }

  onSent(providerMs: number | null): void {
    if (providerMs !== null) this.callMs += (providerMs - this.callMs) / 50;
    this.wake();
  }

  /** Claims that can't be sent now are known not sent; they become waiting rows, with no retry used up. */
  private release(lane: NumberLane, why: string): void {
    for (const claimed of lane.ready.remove(() => true)) this.options.sending.notSent(claimed, why);
  }

  /** So much of the deadline must be left for the answer that a slow provider does not make everything uncertain. */
  private releaseOverdue(lane: NumberLane, now: number): void {
    const latest = now + this.options.deadlineMs / 2;
    while (lane.ready.size > 0 && lane.ready.peek()!.deadlineAt < latest)
      this.options.sending.notSent(lane.ready.shift()!, 'waited_too_long');
  }

  private async reserve(requests: ReadonlyArray<SlotRequest & { lane: NumberLane }>): Promise<void> {
    const { slots, clock, horizonMs } = this.options;
    this.reserving = true;
    for (const { lane } of requests) lane.reserving = true;
    try {
      const answers = await slots.reserve(requests, horizonMs);
      const now = clock.monotonicMs();
      requests.forEach(({ lane }, index) => {
        const { offsetMs, count, stepMs } = answers[index]!;
        lane.pace.granted(now, offsetMs, count, stepMs);
      });
    } catch {
      const now = clock.monotonicMs();
      for (const { lane, wanted } of requests) {
        const before = lane.pace.held;
        lane.pace.grantLocally(now, wanted);
        senderMetrics.localSlots.add(lane.pace.held - before);
      }
    } finally {
      for (const { lane } of requests) lane.reserving = false;
      this.reserving = false;
      this.wake();
    }
  }

  private warm(lane: NumberLane, mode: 'test' | 'live', now: number): void {
    if (now - this.warmedAt[mode] < WARM_EVERY_MS) return;
    this.warmedAt[mode] = now;
    let rate = 0;
    for (const each of this.options.lanes.active) {
      if (this.options.numbers.get(each.numberId)?.mode === mode) rate += Math.min(each.pace.rate.at(now), each.demand);
    }
    this.options.adapter.warm(mode, Math.ceil((rate * this.callMs * 1.5) / 1_000) + 2);
  }
}

function reasonOf(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'claimed':
    case 'parked':
      return 'none';
    case 'final':
    case 'held':
      return verdict.reason;
    case 'silent':
      return verdict.why;
    case 'settled':
      return verdict.state;
    default:
      return verdict satisfies never;
  }
}
