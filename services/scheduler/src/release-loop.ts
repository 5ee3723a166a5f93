import type { Log } from '#runtime/log';
import { nextLookInMs, type LookIntervals } from './planning/next-look';
import type { Release, ReleaseDue } from './release-due';

export interface LoopSettings extends LookIntervals {
  /** Rounds that are being produced while the next one is picked. */
  inFlight: number;
  /** After a failed look, before the next one. */
  backOffMs: number;
}

/**
 * Looks, releases, sleeps until the next instant that matters. The sleep is a difference of two readings of PostgreSQL's clock,
 * measured on our monotonic one; whether something is due, PostgreSQL alone decides.
 */
export class ReleaseLoop {
  private readonly finishing = new Set<Promise<void>>();
  private running: Promise<void> | undefined;
  private stopped = false;
  private signalled = false;
  /** Monotonic instant by which somebody asked for a look, also while one is under way. */
  private askedAt = Infinity;
  /** Monotonic instant at which the present sleep ends. */
  private sleepsUntil = -Infinity;
  private endSleep: () => void = () => undefined;
  private timer: NodeJS.Timeout | undefined;
  /** As of the last look: somebody waits, perhaps for a number that is being released for. */
  private unserved = false;
  /** Monotonic milliseconds of the last look that succeeded. */
  lastLookMs = 0;

  constructor(
    private readonly releaseDue: Pick<ReleaseDue, 'pick' | 'finish'>,
    private readonly settings: LoopSettings,
    private readonly log: Log,
  ) {}

  start(): void {
    this.running ??= this.run();
  }

  /** Something changed: look at once. */
  wake(): void {
    this.signalled = true;
    this.endSleep();
  }

  /** Something is due in that time: look then, if no look is planned before. */
  wakeIn(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    this.askedAt = Math.min(this.askedAt, at);
    if (at < this.sleepsUntil) this.sleepUntil(at);
  }

  /** Nothing is picked any more; what was picked is produced and its cursors move. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped) await this.sleep(await this.lookOnce());
    await Promise.all(this.finishing);
  }

  /** One look with its release started; answers how long to sleep. */
  private async lookOnce(): Promise<number> {
    try {
      if (this.finishing.size >= this.settings.inFlight) await Promise.race(this.finishing);
      this.signalled = false;
      const release = await this.releaseDue.pick();
      this.lastLookMs = performance.now();
      this.unserved = release.picked.look.unserved;
      if (release.picked.slices.length > 0) this.finish(release);
      return nextLookInMs(release.picked.look, this.settings);
    } catch (error) {
      this.log.warn('the due index could not be read; trying again', { error, waitedMs: this.settings.backOffMs });
      return this.settings.backOffMs;
    }
  }

  private finish(release: Release): void {
    const finishing = this.releaseDue
      .finish(release)
      .then(({ failed }) => {
        // Its numbers are free again. Where nobody waits for them, a look would be for nothing.
        if (failed) this.wakeIn(this.settings.backOffMs);
        else if (this.unserved) this.wake();
      })
      .catch((error: unknown) => {
        this.log.warn('a release did not come to its end; its numbers are free again when their leases end', { error });
      })
      .finally(() => this.finishing.delete(finishing));
    this.finishing.add(finishing);
  }

  private sleep(milliseconds: number): Promise<void> {
    const now = performance.now();
    const until = Math.min(now + milliseconds, this.askedAt);
    if (this.askedAt <= now) this.askedAt = Infinity;
    if (this.stopped || this.signalled || until <= now) return Promise.resolve();
    return new Promise((resolve) => {
      this.endSleep = () => {
        clearTimeout(this.timer);
        this.endSleep = () => undefined;
        this.sleepsUntil = -Infinity;
        if (this.askedAt <= performance.now()) this.askedAt = Infinity;
        resolve();
      };
      this.sleepUntil(until);
    });
  }

  private sleepUntil(at: number): void {
    clearTimeout(this.timer);
    this.sleepsUntil = at;
    // Rounded up: a timer that fires too early finds nothing due and has to be set again.
    this.timer = setTimeout(() => this.endSleep(), Math.max(0, Math.ceil(at - performance.now())));
  }
}
