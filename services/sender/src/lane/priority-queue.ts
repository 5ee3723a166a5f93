import { Fifo } from './fifo';

const LOWEST = 9;

/** What waits in the lane of one number: the most urgent first (1 before 9), in order of arrival within a priority. */
export class PriorityQueue<T extends { readonly priority: number }> {
  private readonly queues = Array.from({ length: LOWEST + 1 }, () => new Fifo<T>());
  private count = 0;

  get size(): number {
    return this.count;
  }

  add(item: T): void {
    this.queueOf(item).push(item);
    this.count++;
  }

  take(most: number): T[] {
    const taken: T[] = [];
    for (const queue of this.queues) {
      while (taken.length < most && queue.size > 0) taken.push(queue.shift()!);
    }
    this.count -= taken.length;
    return taken;
  }

  /** Puts back what was taken, before what came later. */
  putBack(items: readonly T[]): void {
    for (const queue of this.queues) {
      const own = items.filter((item) => this.queueOf(item) === queue);
      if (own.length > 0) queue.unshiftAll(own);
    }
    this.count += items.length;
  }

  remove(matches: (item: T) => boolean): T[] {
    const removed = this.queues.flatMap((queue) => queue.remove(matches));
    this.count -= removed.length;
    return removed;
  }

  private queueOf(item: T): Fifo<T> {
    return this.queues[Math.min(LOWEST, Math.max(0, Math.trunc(item.priority)))]!;
  }
}
