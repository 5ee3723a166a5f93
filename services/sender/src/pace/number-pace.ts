import { GuardRing, guardWindow } from './guard-ring';
import { LearnedRate } from './learned-rate';

/**
 * Slots lie 1.2 % further apart than the rate says and the guard's window is 1 % longer than a second: what a late timer costs is
 * then won back at 2 ms a second, where equal figures let every delay stay for good. Simulated and measured: 0.987 to 0.988 of the
 * rate, none over (docs/adr on pace).
 */
export const SLOT_STRETCH = 1.012;
export const GUARD_WINDOW_MS = 1_010;
/** A slot older than this is given up before the call is begun; at the socket the limit is 100 ms. */
const SLOT_KEEPS_MS = 60;
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
  /** Taken, and neither written nor given up yet: a call may wait for a connection. */
  private begun = 0;
  /** Slots that passed unused since the last reading: pace that was paid for and not had. */
  spent = 0;

  constructor(
    allowedPerSecond: number,
    private readonly horizonMs: number,
    learnedPerSecond?: number,
    now = 0,
  ) {
    this.rate = new LearnedRate(allowedPerSecond, learnedPerSecond ?? allowedPerSecond, now);
    const { limit, windowMs } = guardWindow(allowedPerSecond, GUARD_WINDOW_MS);
    this.guard = new GuardRing(limit, windowMs);
  }

  allow(allowedPerSecond: number, now: number): void {
    if (allowedPerSecond === this.rate.allowed) return;
    this.rate.allow(allowedPerSecond, now);
    const { limit, windowMs } = guardWindow(allowedPerSecond, GUARD_WINDOW_MS);
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
    return (1_000 * SLOT_STRETCH) / this.rate.at(now);
  }

  /** How many slots to reserve now for `demand` messages; 0 when enough are at hand or it was just answered that none are free. */
  wanted(now: number, demand: number): number {
    if (now < this.askAgainAt || now + this.horizonMs < this.notBefore) return 0;
    this.dropStale(now);
    const missing = demand - this.held;
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

  /** Slots that come up to `until`: so many messages should have passed the gate by then. */
  slotsUntil(now: number, until: number): number {
    this.dropStale(now);
    let count = 0;
    for (let i = this.head; i < this.slots.length && this.slots[i]! <= until; i++) count++;
    return count;
  }

  /** The slot that the message behind `before` others would get; infinity when it is not reserved yet. */
  slotBehind(before: number): number {
    return this.slots[this.head + before] ?? Number.POSITIVE_INFINITY;
  }

  /** When more slots should be asked for, if there is demand for them. */
  get reserveAt(): number {
    return this.held === 0 ? this.askAgainAt : Math.max(this.askAgainAt, this.lastSlot - this.horizonMs / 2);
  }

  /** When the next message may be written; infinity without a slot. */
  nextAt(now: number): number {
    this.dropStale(now);
    const slot = this.slots[this.head];
    return slot === undefined ? Number.POSITIVE_INFINITY : Math.max(slot, this.guard.readyAt(this.begun), this.notBefore);
  }

  /** Takes the next slot if it is time, and answers when it was for. */
  take(now: number): number | null {
    if (this.nextAt(now) > now) return null;
    const slot = this.slots[this.head++]!;
    this.begun++;
    if (this.head > 64 && this.head * 2 > this.slots.length) {
      this.slots = this.slots.slice(this.head);
      this.head = 0;
    }
    return slot;
  }

  /** In the tick that writes the socket: true, and the send counts from now, or false, and it must not be written. */
  write(now: number): boolean {
    this.begun--;
    if (now < this.guard.readyAt() || now < this.notBefore) return false;
    this.guard.sent(now);
    return true;
  }

  /** What was taken is not written after all. */
  giveUp(): void {
    this.begun--;
  }

  private dropStale(now: number): void {
    // What the guard or a wait keeps back for too long is given up as well: the slot after it is as good.
    const ready = this.guard.readyAt(this.begun);
    const from = Math.max(now, this.notBefore, ready === Number.POSITIVE_INFINITY ? now : ready);
    while (this.head < this.slots.length && this.slots[this.head]! + SLOT_KEEPS_MS < from) {
      this.head++;
      this.spent++;
    }
    if (this.head === this.slots.length && this.head > 0) {
      this.slots = [];
      this.head = 0;
    }
  }
}
