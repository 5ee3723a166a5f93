import { GuardRing, guardWindow } from './guard-ring';
import { LearnedRate } from './learned-rate';

/**
 * How much longer than a second the guard's window is: what a provider may see of one second's sends in less than that, since
 * calls are not equally long on their way. 10 ms cost 1 % of the rate.
 */
export const MARGIN_MS = 10;
/**
 * Slots lie a little further apart than the window asks for: what a late timer costs is then won back at 2 ms a second, where equal
 * figures let every delay stay for good. Simulated with stalls of 20 ms: 0.987 of the rate, none over.
 */
const SLACK_MS = 2;
/** At the socket no slot may be older than this. */
export const SLOT_AGE_MS = 100;
const LOCAL_SHARE = 0.5;

/** When one number may send: reserved slots, the guard, and moments before which nothing may happen. Times are monotonic milliseconds. */
export class NumberPace {
  readonly rate: LearnedRate;
  private readonly guard: GuardRing;
  private slots: number[] = [];
  private head = 0;
  private notBefore = Number.NEGATIVE_INFINITY;
  private askAgainAt = Number.NEGATIVE_INFINITY;
  private lastSlot = Number.NEGATIVE_INFINITY;
  /** Calls that are on their way to the socket; each takes the oldest good slot when it gets there. */
  private begun = 0;
  /** Slots that passed unused since the last reading: pace that was paid for and not had. */
  spent = 0;

  constructor(
    allowedPerSecond: number,
    private readonly horizonMs: number,
    learnedPerSecond?: number,
    now = 0,
    private readonly marginMs = MARGIN_MS,
  ) {
    this.rate = new LearnedRate(allowedPerSecond, learnedPerSecond ?? allowedPerSecond, now);
    const { limit, windowMs } = guardWindow(allowedPerSecond, 1_000 + this.marginMs);
    this.guard = new GuardRing(limit, windowMs);
  }

  allow(allowedPerSecond: number, now: number): void {
    if (allowedPerSecond === this.rate.allowed) return;
    this.rate.allow(allowedPerSecond, now);
    const { limit, windowMs } = guardWindow(allowedPerSecond, 1_000 + this.marginMs);
    this.guard.resize(limit, windowMs);
  }

  /** Nothing before `at`; slots that lie before it are lost. */
  waitUntil(at: number): void {
    this.notBefore = Math.max(this.notBefore, at);
  }

  /** Forgets what was reserved; what was sent stays in the guard. */
  dropSlots(): void {
    this.slots = [];
    this.head = 0;
  }

  get held(): number {
    return this.slots.length - this.head;
  }

  stepMs(now: number): number {
    return (1_000 + this.marginMs + SLACK_MS) / this.rate.at(now);
  }

  /** How many slots to reserve now for `demand` messages that wait; 0 when enough are at hand or none can be free yet. */
  wanted(now: number, demand: number): number {
    if (now < this.askAgainAt || now + this.horizonMs < this.notBefore) return 0;
    this.dropStale(now);
    const missing = demand + this.begun - this.held;
    // Asked for anew when half of the horizon is used up, so that a slow answer never leaves a gap.
    if (missing <= 0 || (this.held > 0 && this.lastSlot > now + this.horizonMs / 2)) return 0;
    return Math.min(missing, Math.max(1, Math.ceil(this.horizonMs / this.stepMs(now))));
  }

  /** `count` slots, the first `offsetMs` from now, where now is when the answer arrived: the time on the way is never gained. */
  granted(now: number, offsetMs: number, count: number, stepMs: number): void {
    if (count === 0) {
      this.askAgainAt = now + Math.max(1, offsetMs - this.horizonMs);
      return;
    }
    for (let i = 0; i < count; i++) this.slots.push(now + offsetMs + i * stepMs);
    this.lastSlot = now + offsetMs + (count - 1) * stepMs;
  }

  /** Without Redis: half of the rate by our own clock, since nobody coordinates us with a sender that may still be at work. */
  grantLocally(now: number, wanted: number): void {
    const step = this.stepMs(now) / LOCAL_SHARE;
    const first = Math.max(now, this.lastSlot + step, this.notBefore);
    const fit = Math.min(wanted, Math.floor((now + this.horizonMs - first) / step) + 1);
    if (fit <= 0) this.granted(now, first - now, 0, step);
    else this.granted(now, first - now, fit, step);
  }

  /** Slots up to `until` that no call is on its way for: so many messages should have passed the gate by then. */
  slotsUntil(now: number, until: number): number {
    this.dropStale(now);
    let count = 0;
    for (let i = this.head; i < this.slots.length && this.slots[i]! <= until; i++) count++;
    return Math.max(0, count - this.begun);
  }

  /** The slot that the message behind `before` others would get; infinity when it is not reserved yet. */
  slotBehind(before: number): number {
    return this.slots[this.head + this.begun + before] ?? Number.POSITIVE_INFINITY;
  }

  /** When more slots should be asked for, if there is demand for them. */
  get reserveAt(): number {
    return this.held === 0 ? this.askAgainAt : Math.max(this.askAgainAt, this.lastSlot - this.horizonMs / 2);
  }

  /** When the next call may be begun; infinity without a slot for it. */
  nextAt(now: number): number {
    this.dropStale(now);
    const slot = this.slots[this.head + this.begun];
    return slot === undefined ? Number.POSITIVE_INFINITY : Math.max(slot, this.guard.readyAt(this.begun), this.notBefore);
  }

  /** A call sets out for the socket if there is a slot for it now. What follows is `write` or `giveUp`. */
  begin(now: number): boolean {
    if (this.nextAt(now) > now) return false;
    this.begun++;
    return true;
  }

  /**
   * In the tick that writes the socket: a number, and a slot is used and the send counts from now; null, and it must not be written.
   * The slot is taken here and not when the call set out: a turn of the event loop lies between the two, and what is too old by
   * then may have been followed by one that is not.
   */
  write(now: number): number | null {
    this.begun--;
    this.dropStale(now);
    const slot = this.slots[this.head];
    if (slot === undefined || slot > now || now < this.guard.readyAt() || now < this.notBefore) return null;
    this.head++;
    if (this.head > 64 && this.head * 2 > this.slots.length) {
      this.slots = this.slots.slice(this.head);
      this.head = 0;
    }
    return this.guard.sent(now);
  }

  /** The provider has answered the send that `write` gave this number to. */
  answered(send: number, at: number): void {
    this.guard.answered(send, at);
  }

  /** The call is not written after all. */
  giveUp(): void {
    this.begun--;
  }

  private dropStale(now: number): void {
    // What the guard or a wait keeps back for too long is given up as well: the slot after it is as good.
    const from = Math.max(now, this.notBefore, this.guard.readyAt());
    while (this.head < this.slots.length && this.slots[this.head]! + SLOT_AGE_MS < from) {
      this.head++;
      this.spent++;
    }
    if (this.head === this.slots.length && this.head > 0) {
      this.slots = [];
      this.head = 0;
    }
  }
}
