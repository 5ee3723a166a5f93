import type { Database, Statement } from '../postgres/database';
import { retrying } from '../postgres/retrying';

/** Collects acknowledged rows over all lanes while one statement is out; the next statement takes them together. */
export class SentRows {
  private waiting: { ids: string[]; resolve: () => void; reject: (error: unknown) => void }[] = [];
  private busy = false;

  constructor(
    private readonly database: Database,
    private readonly statement: Statement,
    private readonly signal: AbortSignal,
  ) {}

  delete(ids: string[]): Promise<void> {
    if (ids.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.waiting.push({ ids, resolve, reject });
      if (!this.busy) void this.drain();
    });
  }

  private async drain(): Promise<void> {
    this.busy = true;
    while (this.waiting.length > 0) {
      const taken = this.waiting.splice(0);
      try {
        // Deleting twice does nothing, so a lost connection is no reason to give up and send everything again.
        await retrying(() => this.database.rows(this.statement, [taken.flatMap(({ ids }) => ids)]), {
          idempotent: true,
          attempts: 1_000,
          signal: this.signal,
        });
        for (const { resolve } of taken) resolve();
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    this.busy = false;
  }
}
