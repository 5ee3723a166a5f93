import type { Log } from './log';
import { pause } from './pause';

/** Runs a step again and again; the step answers how long to wait before the next. A failure is reported and waited out. */
export class RepeatStep {
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;

  constructor(
    private readonly name: string,
    private readonly step: () => Promise<number>,
    private readonly log: Log,
  ) {}

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) await pause(await this.once(), signal);
  }

  private async once(): Promise<number> {
    try {
      return await this.step();
    } catch (error) {
      if (!this.stopping.signal.aborted)
        this.log.warn('a step failed; it is tried again in a second', { part: this.name, error });
      return 1_000;
    }
  }
}
