/**
 * Things that become due, kept in one bucket per millisecond. A heap over the items themselves would cost a comparison chain
 * for every status of every message; here it is paid once per distinct millisecond.
 */
export class DelayQueue<T> {
  readonly #buckets = new Map<number, T[]>();
  readonly #heap: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The millisecond at which the earliest item is due, or undefined when nothing waits. */
  get nextDueMs(): number | undefined {
    return this.#heap[0];
  }

  /** Never early: a fraction of a millisecond rounds up. */
  add(dueMs: number, item: T): void {
    const bucketMs = Math.ceil(dueMs);
    const bucket = this.#buckets.get(bucketMs);
    if (bucket) bucket.push(item);
    else {
      this.#buckets.set(bucketMs, [item]);
      this.#raise(bucketMs);
    }
    this.#size += 1;
  }

  /** Items due at `nowMs`, earliest first, in the order of adding within a millisecond. */
  takeDue(nowMs: number): T[] {
    let due: T[] = [];
    for (let next = this.#heap[0]; next !== undefined && next <= nowMs; next = this.#heap[0]) {
      const bucket = this.#buckets.get(next) ?? [];
      this.#buckets.delete(next);
      this.#removeFirst();
      if (due.length === 0) due = bucket;
      else for (const item of bucket) due.push(item);
    }
    this.#size -= due.length;
    return due;
  }

  takeAll(): T[] {
    return this.takeDue(Number.POSITIVE_INFINITY);
  }

  #raise(value: number): void {
    const heap = this.#heap;
    let index = heap.push(value) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent]!;
      if (above <= value) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = value;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child += 1;
      if (heap[child]! >= last) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}
