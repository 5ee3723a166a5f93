import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import type { Database } from '#runtime/postgres/database';
import { forgetAnswers } from './postgres/answers';

const EVERY_MS = 60_000;

/** Drops kept answers that are older than a day. */
export class AnswerKeeper {
  private readonly stopping = new AbortController();
  private loop: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly log: Log,
  ) {}

  start(): void {
    this.loop ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  forgetOnce(): Promise<void> {
    return forgetAnswers(this.database);
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.forgetOnce().catch((error: unknown) =>
        this.log.warn('old answers were not dropped; tried again in a minute', { error }),
      );
      await pause(EVERY_MS, signal);
    }
  }
}
