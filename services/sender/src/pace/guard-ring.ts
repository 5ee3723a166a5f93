/** A send counts from this long after its write at most: a provider that answers late has not necessarily read late. */
const MOST_TRANSIT_MS = 150;

/**
 * The last sends of one number, and with them the earliest moment at which another may be written. Reserved slots alone exceed a
 * rate by one in some 40 % of all windows, because timers fire late and then catch up; this ring is what makes the rate hold.
 *
 * A send counts from its write or, where answers say that the provider can have read it later than that, from then: what a jam on
 * the way has held back arrives all at once, and the provider counts it then. One late answer says nothing, since a provider may
 * think long about one message; when everything that was written since is late too, it was the way. Simulated with jams of 110 ms
 * every two seconds: from 80/s on, calls of 15 to 80 ms show them whole, at 0.981 of the rate; calls of 200 to 900 ms show nothing
 * and lose nothing.
 */
export class GuardRing {
  private written: Float64Array;
  /** The earliest moment by which the provider has shown that it reads what was written then. Never falls from one send to the next. */
  private readBy: Float64Array;
  private next = 0;
  private filled = 0;
  private newest = 0;
  /** So long a call takes that the way is free when one of those of a tenth of a second has taken no longer. */
  private usualMs = -1;

  /** At most `limit` sends in any `windowMs`. */
  constructor(
    private limit: number,
    private windowMs: number,
  ) {
    this.written = new Float64Array(limit);
    this.readBy = new Float64Array(limit);
  }

  get window(): { limit: number; windowMs: number } {
    return { limit: this.limit, windowMs: this.windowMs };
  }

  /**
   * When one more send fits behind the known ones and `begun` others that are on their way to the socket; negative infinity for
   * now, infinity while those on their way fill the window alone.
   */
  readyAt(begun = 0): number {
    if (begun >= this.limit) return Number.POSITIVE_INFINITY;
    if (this.filled + begun < this.limit) return Number.NEGATIVE_INFINITY;
    const index = (this.next + begun) % this.limit;
    const written = this.written[index]!;
    const readBy = this.readBy[index]!;
    // Not known at all: nothing was answered since, and the way is not what we know least about.
    const counts = readBy === Number.POSITIVE_INFINITY ? written : Math.min(readBy, written + MOST_TRANSIT_MS);
    return Math.max(written, counts) + this.windowMs;
  }

  /** Answers the number by which `answered` knows the send. */
  sent(at: number): number {
    this.written[this.next] = at;
    this.readBy[this.next] = Number.POSITIVE_INFINITY;
    this.next = (this.next + 1) % this.limit;
    if (this.filled < this.limit) this.filled++;
    return ++this.newest;
  }

  /** The provider has answered a send: it had read that one, and all that were written before it, by about now. */
  answered(send: number, at: number): void {
    const age = this.newest - send;
    if (age >= this.filled) return;
    const index = this.indexOf(age);
    const tookMs = at - this.written[index]!;
    if (this.usualMs < 0) this.usualMs = tookMs;
    const readBy = at - this.usualMs;
    const step = Math.max(0.2, this.usualMs / 10);
    const share = this.usualShare;
    this.usualMs = Math.max(0, this.usualMs + (tookMs > this.usualMs ? step * share : -step * (1 - share)));
    for (let back = age; back < this.filled; back++) {
      const earlier = this.indexOf(back);
      if (this.readBy[earlier]! <= readBy) return;
      this.readBy[earlier] = readBy;
    }
  }

  /** Keeps the newest sends: under the old limit no window held more than those. */
  resize(limit: number, windowMs: number): void {
    this.windowMs = windowMs;
    if (limit === this.limit) return;
    const kept = Math.min(this.filled, limit);
    const written = new Float64Array(limit);
    const readBy = new Float64Array(limit);
    for (let i = 0; i < kept; i++) {
      const index = this.indexOf(kept - 1 - i);
      written[i] = this.written[index]!;
      readBy[i] = this.readBy[index]!;
    }
    this.written = written;
    this.readBy = readBy;
    this.limit = limit;
    this.filled = kept;
    this.next = kept % limit;
  }

  /**
   * The share of calls that take no longer than `usualMs`. Whatever the rate, all calls of a tenth of a second take longer in one
   * of twenty cases only: where there is one call in that time, one of twenty is above it; where there are eight, two of three.
   */
  private get usualShare(): number {
    const calls = Math.max(1, (this.limit / this.windowMs) * 100);
    return Math.min(0.95, Math.max(0.05, 1 - 0.05 ** (1 / calls)));
  }

  private indexOf(age: number): number {
    return (this.next - 1 - age + 2 * this.limit) % this.limit;
  }
}

/** A rate that is not whole, or below one, has a window of another length with a whole number of sends in it. */
export function guardWindow(ratePerSecond: number, windowMs: number): { limit: number; windowMs: number } {
  const limit = Math.max(1, Math.floor(ratePerSecond + 1e-9));
  return { limit, windowMs: (windowMs * limit) / ratePerSecond };
}
