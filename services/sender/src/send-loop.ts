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
  /** A message that was asked for twice, since the first answer was lost, and has a claim: maybe ours. */
  onLostAnswer(message: LaneMessage): void;
}

const IDLE_MS = 1_000;
const WARM_EVERY_MS = 500;
/** While nothing may be claimed because results can't be recorded. */
const AGAIN_MS = 50;
const TYPICAL_CALL_MS = 100;
/** When a message has to ask the gate, those of its number that would within this time ask with it: a statement for each costs more. */
const TOGETHER_MS = 25;
/** A claimed message may miss its slot by so much before its lane claims no more. */
const MOST_LATE_MS = 500;

/**
 * For every lane with work: reserve slots, ask the gate shortly before each slot, write at the slot. One timer for all lanes; the
 * gate's, Redis's and the providers' answers wake it as well.
 */
export class SendLoop {
  private timer: NodeJS.Timeout | undefined;
  private woken = false;
  private stopped = false;
  private reserving = false;
  private requests = new Map<NumberLane, SlotRequest>();
  private readonly inFlight = { test: 0, live: 0 };
  private readonly warmedAt = { test: Number.NEGATIVE_INFINITY, live: Number.NEGATIVE_INFINITY };
  private callMs = TYPICAL_CALL_MS;

  constructor(private readonly options: SendLoopOptions) {}

  /** Something changed for this lane, or for all: look again in the next turn of the event loop. */
  wake(lane?: NumberLane): void {
    if (lane) lane.lookAt = Number.NEGATIVE_INFINITY;
    else for (const each of this.options.lanes.active) each.lookAt = Number.NEGATIVE_INFINITY;
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
    this.wake(lane);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** One look at every lane that has to be looked at. Answers the monotonic time of the next one. */
  tickOnce(): number {
    const { clock, lanes, claims } = this.options;
    const now = clock.monotonicMs();
    let next = now + IDLE_MS;
    for (const lane of lanes.active) {
      // Thousands of answers a second wake single lanes; to go through all the others each time would cost more than sending.
      if (lane.lookAt <= now) lane.lookAt = this.work(lane, now);
      if (lane.active) next = Math.min(next, lane.lookAt);
      else lanes.active.delete(lane);
    }
    if (this.requests.size > 0 && !this.reserving) void this.reserve();
    return Math.max(next, claims.resumesAt > now ? claims.resumesAt : 0);
  }

  private run(): void {
    if (this.stopped) return;
    clearTimeout(this.timer);
    const next = this.tickOnce();
    this.timer = setTimeout(() => this.run(), Math.max(1, Math.floor(next - this.options.clock.monotonicMs())));
  }

  private work(lane: NumberLane, now: number): number {
    const { numbers, claims, results, circuits } = this.options;
    const number = numbers.get(lane.numberId);
    if (lane.block === 'not_owned' || !number) return now + IDLE_MS;
    // The messages of a held number need no slots: the gate keeps them as waiting rows, and the lane is free again.
    if (lane.block === 'held') {
      this.release(lane, 'number_held');
      if (results.accepting && lane.hold?.stored) this.claim(lane, lane.queue.size);
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
      if (!lane.pace.begin(now)) break;
      this.inFlight[number.mode]++;
      void this.options.sending.send(lane, number, lane.ready.shift()!, this.options.adapter).finally(() => {
        if (this.inFlight[number.mode]-- >= this.options.connections) this.wake();
      });
    }
    if (lane.ready.size > 0) next = Math.min(next, Math.max(now + 1, lane.pace.nextAt(now)));

    if (results.accepting && claims.resumesAt <= now) {
      const asked = lane.claiming + lane.ready.size;
      if (!this.isBehind(lane, now) && lane.pace.slotsUntil(now, now + claims.leadMs) > asked)
        this.claim(lane, lane.pace.slotsUntil(now, now + claims.leadMs + TOGETHER_MS) - asked);
      if (lane.queue.size > 0) next = Math.min(next, lane.pace.slotBehind(lane.claiming + lane.ready.size) - claims.leadMs);
    } else next = Math.min(next, Math.max(now + AGAIN_MS, claims.resumesAt));

    if (!lane.reserving) {
      const wanted = lane.pace.wanted(now, lane.demand);
      if (wanted > 0) this.requests.set(lane, { number: lane.providerIdentity, wanted, stepMs: lane.pace.stepMs(now) });
      else if (lane.demand > lane.pace.held) next = Math.min(next, Math.max(now + 1, lane.pace.reserveAt));
    }
    if (lane.pace.spent > 0) {
      senderMetrics.slotsSpent.add(lane.pace.spent);
      lane.pace.spent = 0;
    }
    this.warm(number.mode, now);
    return next;
  }

  /**
   * Slots pass that this process is too busy to use: whatever else it claimed would only wait, out of a cancel's reach, and go back
   * unsent when half of its deadline is gone.
   */
  private isBehind(lane: NumberLane, now: number): boolean {
    const first = lane.ready.peek();
    if (!first) return false;
    const { deadlineMs, claims } = this.options;
    const waited = now - (first.deadlineAt - deadlineMs);
    return waited > claims.leadMs + Math.min(MOST_LATE_MS, deadlineMs / 4);
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
    if (verdict.kind === 'silent' && message.askedBefore) this.options.onLostAnswer(message);
    if (verdict.kind === 'claimed') {
      const claimed = { message, claim: verdict, deadlineAt };
      // The partition went while we asked: somebody else's pace rules now.
      if (lane.ownership !== ownership || this.stopped) this.options.sending.notSent(claimed, 'not_ours');
      else {
        lane.ready.push(claimed);
        this.options.lanes.active.add(lane);
      }
    }
    this.wake(lane);
  }

  onUnanswered(claiming: readonly Claiming[]): void {
    const lanes = new Map<NumberLane, LaneMessage[]>();
    for (const { lane, message, ownership } of claiming) {
      lane.claiming--;
      message.askedBefore = true;
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

  /** A call is over: its connection is free, and its message may be back in the lane. */
  onDone(lane: NumberLane, callMs: number | null): void {
    if (callMs !== null) this.callMs += (callMs - this.callMs) / 50;
    if (lane.ready.size > 0) {
      this.options.lanes.active.add(lane);
      this.wake(lane);
    }
  }

  /** Claims that can't be sent now are known not sent; they become waiting rows, with no retry used up. */
  private release(lane: NumberLane, why: string): void {
    for (const claimed of lane.ready.remove(() => true)) this.options.sending.notSent(claimed, why, lane.hold);
  }

  /** So much of the deadline must be left for the answer that a slow provider does not make everything uncertain. */
  private releaseOverdue(lane: NumberLane, now: number): void {
    const latest = now + this.options.deadlineMs / 2;
    while (lane.ready.size > 0 && lane.ready.peek()!.deadlineAt < latest)
      this.options.sending.notSent(lane.ready.shift()!, 'waited_too_long');
  }

  /** One round trip for all lanes that want slots; what comes meanwhile is the next one. */
  private async reserve(): Promise<void> {
    const { slots, clock, horizonMs } = this.options;
    const requests = [...this.requests];
    this.requests = new Map();
    this.reserving = true;
    for (const [lane] of requests) lane.reserving = true;
    try {
      const answers = await slots.reserve(
        requests.map(([, request]) => request),
        horizonMs,
      );
      const now = clock.monotonicMs();
      requests.forEach(([lane], index) => {
        const { offsetMs, count, stepMs } = answers[index]!;
        lane.pace.granted(now, offsetMs, count, stepMs);
      });
    } catch {
      const now = clock.monotonicMs();
      for (const [lane, { wanted }] of requests) {
        const before = lane.pace.held;
        lane.pace.grantLocally(now, wanted);
        senderMetrics.localSlots.add(lane.pace.held - before);
      }
    } finally {
      this.reserving = false;
      for (const [lane] of requests) {
        lane.reserving = false;
        this.wake(lane);
      }
    }
  }

  private warm(mode: 'test' | 'live', now: number): void {
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
