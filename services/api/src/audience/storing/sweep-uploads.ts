import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import type { AudienceStore } from './audience-store';

const EVERY_MS = 60_000;
/** An upload at work moves its mark at least every two minutes, however slow its client is. */
export const ABANDONED_AFTER_SECONDS = 600;

/** Removes what uploads left behind whose process died. */
export class UploadSweeper {
  private readonly stopping = new AbortController();
  private loop: Promise<void> | undefined;

  constructor(
    private readonly store: AudienceStore,
    private readonly log: Log,
    private readonly abandonedAfterSeconds = ABANDONED_AFTER_SECONDS,
  ) {}

  start(): void {
    this.loop ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  /** A few of them; how many. */
  async sweepOnce(): Promise<number> {
    const gone = await this.store.discardAbandoned(this.abandonedAfterSeconds);
    for (const audienceId of gone) this.log.info('an abandoned upload was removed', { audienceId });
    return gone.length;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        if ((await this.sweepOnce()) > 0) continue;
      } catch (error) {
        this.log.warn('abandoned uploads could not be removed; tried again in a minute', { error });
      }
      await pause(EVERY_MS, signal);
    }
  }
}
