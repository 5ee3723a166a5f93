import { pause } from '#runtime/pause';
import { isRetriable } from '#runtime/retriable';
import { weightOf, type ReadBatch } from './items';

interface Waiting {
  batch: ReadBatch;
  weight: number;
  done(): void;
  failed(error: unknown): void;
}

export interface ProjectorOptions {
  /** Weight of a transaction at most; 1,000 if absent. */
  mostWeight?: number;
  /** From the start of one transaction to the start of the next while little waits; 0 if absent. What comes alone goes at once. */
  restMs?: number;
}

/** Worth a transaction at once. */
const MUCH = 250;

/**
 * Collects the batches that the consumers bring while a transaction is out, and projects them together in the next one: a
 * transaction costs a dozen round trips, whether it holds ten records or a thousand. Not more than that: webhooks are acknowledged
 * by the same thread, and a thousand changes keep it for some 20 ms.
 */
export class Projector {
  private waiting: Waiting[] = [];
  private running: Promise<void> | undefined;
  private startedAt = Number.NEGATIVE_INFINITY;
  private readonly mostWeight: number;

  constructor(
    private readonly projectTogether: (batches: ReadBatch[]) => Promise<void>,
    private readonly options: ProjectorOptions = {},
  ) {
    this.mostWeight = options.mostWeight ?? 1_000;
  }

  /** Fulfils when the batch is committed; rejects when it can't be (retriable: the database is away). */
  add(batch: ReadBatch): Promise<void> {
    const weight = batch.records.reduce((sum, { item }) => sum + weightOf(item), 0);
    const committed = new Promise<void>((done, failed) => this.waiting.push({ batch, weight, done, failed }));
    // A turn later: partitions of one fetch arrive in one turn.
    this.running ??= new Promise<void>((resolve) => setImmediate(resolve))
      .then(() => this.drain())
      .finally(() => (this.running = undefined));
    return committed;
  }

  /** Waits for what was added. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async drain(): Promise<void> {
    while (this.waiting.length > 0) {
      await this.rest();
      this.startedAt = performance.now();
      await this.projectNext();
    }
  }

  /** At a trickle a transaction for each record would cost more than everything else that this process does. */
  private async rest(): Promise<void> {
    const left = this.startedAt + (this.options.restMs ?? 0) - performance.now();
    if (left > 0 && this.waiting.reduce((sum, { weight }) => sum + weight, 0) < MUCH) await pause(left);
  }

  private async projectNext(): Promise<void> {
    const taken = this.take();
    try {
      await this.projectTogether(taken.map(({ batch }) => batch));
      for (const { done } of taken) done();
    } catch (error) {
      if (taken.length === 1 || isRetriable(error)) {
        for (const { failed } of taken) failed(error);
        return;
      }
      // One bad record must not make its neighbours' partitions look bad: each on its own says whose it is.
      for (const one of taken) await this.projectTogether([one.batch]).then(one.done, one.failed);
    }
  }

  /** A partition at most once: its offsets are compared and set once in a transaction. */
  private take(): Waiting[] {
    const taken: Waiting[] = [];
    const left: Waiting[] = [];
    const partitions = new Set<string>();
    let weight = 0;
    for (const one of this.waiting) {
      const name = `${one.batch.topic}/${one.batch.partition}`;
      const fits = taken.length === 0 || weight + one.weight <= this.mostWeight;
      if (!fits || partitions.has(name)) {
        left.push(one);
        continue;
      }
      partitions.add(name);
      weight += one.weight;
      taken.push(one);
    }
    this.waiting = left;
    return taken;
  }
}
