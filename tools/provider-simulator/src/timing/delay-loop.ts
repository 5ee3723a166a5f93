import type { SimulatorClock } from './clock';
import { DelayQueue } from './delay-queue';

/** Runs items when their time has come. `step()` is one pass; the timer around it only decides when to look. */
export class DelayLoop<T> {
  readonly #queue = new DelayQueue<T>();
  #timer: NodeJS.Timeout | undefined;
  #wakeMs = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(
    private readonly clock: SimulatorClock,
    private readonly run: (item: T) => void,
    private readonly afterStep: () => void = () => {},
  ) {}

  get size(): number {
    return this.#queue.size;
  }

  nowMs(): number {
    return this.clock.monotonicMicros() / 1000;
  }

  schedule(dueMs: number, item: T): void {
    if (this.#stopped) return;
    this.#queue.add(dueMs, item);
    this.#arm();
  }

  /** Runs everything that is due now; answers how many items that was. */
  step(): number {
    const due = this.#queue.takeDue(this.nowMs());
    for (const item of due) this.run(item);
    this.afterStep();
    return due.length;
  }

  /** Hands back everything that waits, however far away, and forgets it. */
  takeAll(): T[] {
    return this.#queue.takeAll();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#queue.takeAll();
  }

  #arm(): void {
    const nextMs = this.#queue.nextDueMs;
    if (nextMs === undefined || nextMs >= this.#wakeMs) return;
    clearTimeout(this.#timer);
    this.#wakeMs = nextMs;
    this.#timer = setTimeout(
      () => {
        this.#wakeMs = Number.POSITIVE_INFINITY;
        this.step();
        if (!this.#stopped) this.#arm();
      },
      Math.min(Math.max(1, nextMs - this.nowMs()), 2_000_000_000),
    );
  }
}
