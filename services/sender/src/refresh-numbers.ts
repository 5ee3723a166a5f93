import type { Clock } from '#runtime/clock';
import type { Lanes } from './lane/lanes';
import type { NumberLane } from './lane/number-lane';
import type { NumberDirectory, SendingNumber } from './numbers/number-directory';
import type { GatePort, NumberState } from './postgres/gate-port';

export interface RefreshNumbersOptions {
  gate: Pick<GatePort, 'readNumbers' | 'holdNumber' | 'setLearnedRate'>;
  clock: Clock;
  lanes: Lanes;
  numbers: NumberDirectory;
  /** A lane can send again. */
  onUnblocked(): void;
}

/** Keeps lanes in step with the numbers: which are ours, how fast they may be, which are held. */
export class RefreshNumbers {
  private reading: Promise<void> | undefined;
  private learned = new Map<string, number>();
  /** Held numbers, as last read: the health probe asks about those without an end. */
  readonly held = new Map<string, NumberState>();

  constructor(private readonly options: RefreshNumbersOptions) {}

  /** Several callers share one reading, but none that had begun before it was asked for. */
  async refreshOnce(): Promise<void> {
    const current = this.reading;
    if (current) {
      await current.catch(() => undefined);
      if (this.reading) return this.reading;
    }
    this.reading = this.refresh().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async refresh(): Promise<void> {
    const { gate, lanes, numbers, clock } = this.options;
    await numbers.refreshOnce((number) => lanes.owns(number));
    const owned = [...numbers.all()].filter((number) => lanes.owns(number));
    const states = new Map(
      (await gate.readNumbers(owned.map(({ numberId }) => numberId))).map((state) => [state.numberId, state]),
    );
    const now = clock.monotonicMs();
    this.held.clear();
    for (const number of owned) {
      // The partition may have gone while we read.
      if (!lanes.owns(number)) continue;
      const state = states.get(number.numberId);
      const lane = lanes.of(number, state?.learnedRate ?? undefined);
      lane.pace.allow(number.ratePerSecond, now);
      await this.tellLearned(lane, state, now);
      this.block(lane, state, await this.unusable(number, state));
    }
    lanes.forgetIdle();
  }

  private block(lane: NumberLane, state: NumberState | undefined, unusable: boolean): void {
    const wallNow = this.options.clock.nowMs();
    const holds = state !== undefined && state.holdReason !== null && (state.holdUntil === null || state.holdUntil > wallNow);
    if (holds) this.held.set(lane.numberId, state);
    if (lane.block === 'not_owned') return;
    const before = lane.block;
    // What this process found out itself is a hold as well, though it was not stored yet when the gate was read.
    if (lane.hold !== null && !lane.hold.stored) return;
    lane.block = holds || unusable ? 'held' : null;
    lane.hold = holds ? { reason: state.holdReason!, until: state.holdUntil, stored: true } : null;
    if (unusable && !holds) lane.hold = { reason: 'account', until: null, stored: true };
    if (before !== null && lane.block === null) this.options.onUnblocked();
  }

  /** A number that can't send at all is held like one whose account is blocked: its messages wait where people see them. */
  private async unusable(number: SendingNumber, state: NumberState | undefined): Promise<boolean> {
    if (!number.removed && number.accessToken !== null) return false;
    if (state?.holdReason == null) {
      const detail = number.removed ? 'the number was removed' : 'its credentials can not be opened';
      await this.options.gate.holdNumber({ numberId: number.numberId, reason: 'account', until: null, detail });
    }
    return true;
  }

  /** What was learned is kept for whoever sends next, in steps that are worth a write. */
  private async tellLearned(lane: NumberLane, state: NumberState | undefined, now: number): Promise<void> {
    const rate = lane.pace.rate.at(now);
    const { allowed } = lane.pace.rate;
    const told = this.learned.get(lane.numberId) ?? state?.learnedRate ?? allowed;
    const recovered = rate >= allowed && (state?.learnedRate ?? null) !== null;
    if (!recovered && Math.abs(rate - told) < allowed * 0.1) return;
    await this.options.gate.setLearnedRate(lane.numberId, recovered ? null : rate);
    this.learned.set(lane.numberId, rate);
  }
}
