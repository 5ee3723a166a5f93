/** The only source of time. Production has exactly one implementation and no way to set it; tests pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  nowMs(): number;
  /** Monotonic clock, milliseconds with a fraction; comparable only within one process. */
  monotonicMs(): number;
}

export const systemClock: Clock = Object.freeze({
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
});
