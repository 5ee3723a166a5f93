import type { Database, Statement } from '../postgres/database';
import { pause } from '../pause';
import { retrying } from '../postgres/retrying';

/** Worth a statement of their own at once. */
const MANY = 200;

/** Collects acknowledged rows over all lanes for a moment, and while one statement is out; one statement takes them together. */
export class SentRows {
  private waiting: { ids: string[]; resolve: () => void; reject: (error: unknown) => void }[] = [];
  private busy = false;

  constructor(
    private readonly database: Database,
    private readonly statement: Statement,
    private readonly signal: AbortSignal,
    private readonly collectMs: number,
  ) {}

  delete(ids: string[]): Promise<void> {
    if (ids.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.waiting.push({ ids, resolve, reject });
      if (!this.busy) void this.drain();
    });
  }

  private count(): number {
    return this.waiting.reduce((sum, { ids }) => sum + ids.length, 0);
  }

  private async drain(): Promise<void> {
    this.busy = true;
    while (this.waiting.length > 0) {
      if (this.collectMs > 0 && this.count() < MANY) await pause(this.collectMs, this.signal);
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
