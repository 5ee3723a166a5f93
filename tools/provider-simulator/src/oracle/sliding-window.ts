/** Times in the order of arrival, in a ring that grows: what a sliding window needs and nothing more. */
class TimeRing {
  #times = new Float64Array(1024);
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(time: number): void {
    if (this.#size === this.#times.length) this.#grow();
    this.#times[(this.#head + this.#size) & (this.#times.length - 1)] = time;
    this.#size += 1;
  }

  /** Forgets times at or before `limit`: the window is open at its old end. */
  dropUntil(limit: number): void {
    while (this.#size > 0 && this.#times[this.#head]! <= limit) {
      this.#head = (this.#head + 1) & (this.#times.length - 1);
      this.#size -= 1;
    }
  }

  #grow(): void {
    const grown = new Float64Array(this.#times.length * 2);
    for (let index = 0; index < this.#size; index += 1) {
      grown[index] = this.#times[(this.#head + index) & (this.#times.length - 1)]!;
    }
    this.#times = grown;
    this.#head = 0;
  }
}

/**
 * Lets at most `limit` requests through in any sliding window. A request exactly one window after another is outside that
 * one's window, so `limit` every 990.000 ms is allowed and `limit + 1` within 989.999 ms is not.
 */
export class RateGate {
  readonly #accepted = new TimeRing();
  #last = 0;

  /** `limitPerWindow` undefined lets everything through. */
  constructor(
    public limitPerWindow: number | undefined,
    private readonly windowMicros: number,
  ) {}

  tryAccept(arrivedMicros: number): boolean {
    // A body that took long can finish after a later request did: its place in the window is then the later one's.
    this.#last = Math.max(this.#last, arrivedMicros);
    this.#accepted.dropUntil(this.#last - this.windowMicros);
    if (this.limitPerWindow !== undefined && this.#accepted.size >= this.limitPerWindow) return false;
    this.#accepted.push(this.#last);
    return true;
  }
}

/** The most arrivals ever seen in any sliding window of the given length. */
export class BusiestWindow {
  readonly #recent = new TimeRing();
  #last = 0;
  #most = 0;

  constructor(private readonly windowMicros: number) {}

  get most(): number {
    return this.#most;
  }

  record(arrivedMicros: number): void {
    this.#last = Math.max(this.#last, arrivedMicros);
    this.#recent.dropUntil(this.#last - this.windowMicros);
    this.#recent.push(this.#last);
    if (this.#recent.size > this.#most) this.#most = this.#recent.size;
  }
}
