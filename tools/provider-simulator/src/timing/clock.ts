/** Time for the oracle: microseconds, so that windows and gaps can be judged to a fraction of a millisecond. */
export interface SimulatorClock {
  /** Monotonic, comparable within one process only. */
  monotonicMicros(): number;
  /** Since the epoch. */
  wallMicros(): number;
}

/**
 * The wall clock in microseconds is the monotonic clock plus an offset, and the offset is corrected whenever it leaves the
 * millisecond that `Date.now()` names. So it never contradicts the clock that other processes of this machine read, which
 * "was it sent too early?" depends on.
 */
export function systemClock(): SimulatorClock {
  let offsetMicros = Date.now() * 1000 - performance.now() * 1000;
  return {
    monotonicMicros: () => performance.now() * 1000,
    wallMicros: () => {
      const floor = Date.now() * 1000;
      let wall = performance.now() * 1000 + offsetMicros;
      if (wall < floor) {
        offsetMicros += floor - wall;
        wall = floor;
      } else if (wall >= floor + 1000) {
        offsetMicros -= wall - (floor + 999);
        wall = floor + 999;
      }
      return wall;
    },
  };
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements SimulatorClock {
  #monotonic = 0;

  constructor(private readonly startWallMicros = 1_782_900_000_000_000) {}

  monotonicMicros(): number {
    return this.#monotonic;
  }

  wallMicros(): number {
    return this.startWallMicros + this.#monotonic;
  }

  advanceMicros(micros: number): void {
    if (micros < 0) throw new RangeError('a monotonic clock does not go back');
    this.#monotonic += micros;
  }
}
