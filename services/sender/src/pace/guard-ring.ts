/**
 * The last sends of one number, and with them the earliest moment at which another may be written. Reserved slots alone exceed a
 * rate by one in some 40 % of all windows, because timers fire late and then catch up; this ring is what makes the rate hold.
 */
export class GuardRing {
  private times: Float64Array;
  private next = 0;
  private filled = 0;

  /** At most `limit` sends in any `windowMs`. */
  constructor(
    private limit: number,
    private windowMs: number,
  ) {
    this.times = new Float64Array(limit);
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
    return this.times[(this.next + begun) % this.limit]! + this.windowMs;
  }

  sent(at: number): void {
    this.times[this.next] = at;
    this.next = (this.next + 1) % this.limit;
    if (this.filled < this.limit) this.filled++;
  }

  /** Keeps the newest sends: under the old limit no window held more than those. */
  resize(limit: number, windowMs: number): void {
    if (limit === this.limit) {
      this.windowMs = windowMs;
      return;
    }
    const kept = Math.min(this.filled, limit);
    const times = new Float64Array(limit);
    for (let i = 0; i < kept; i++) times[i] = this.times[(this.next - kept + i + this.limit) % this.limit]!;
    this.times = times;
    this.limit = limit;
    this.windowMs = windowMs;
    this.filled = kept;
    this.next = kept % limit;
  }
}

/** A rate that is not whole, or below one, has a window of another length with a whole number of sends in it. */
export function guardWindow(ratePerSecond: number, windowMs: number): { limit: number; windowMs: number } {
  const limit = Math.max(1, Math.floor(ratePerSecond + 1e-9));
  return { limit, windowMs: (windowMs * limit) / ratePerSecond };
}
