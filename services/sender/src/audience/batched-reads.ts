import { BoundedCache } from './bounded-cache';

export interface BatchedReadsOptions<T> {
  bound: number;
  /** Keys in one query at most. */
  most: number;
  /** Keys that are not answered do not exist. */
  read(keys: readonly string[]): Promise<Array<{ key: string; value: T; size: number }>>;
}

/** A cache in front of a query: what is asked for in one turn of the event loop is read together, and each key once at a time. */
export class BatchedReads<T> {
  private readonly cache: BoundedCache<T>;
  private readonly reading = new Map<string, Promise<T | null>>();
  private collected: Array<{ key: string; resolve: (value: T | null) => void; reject: (error: unknown) => void }> = [];

  constructor(private readonly options: BatchedReadsOptions<T>) {
    this.cache = new BoundedCache(options.bound);
  }

  /** At once when it is known; null when it does not exist. What does not exist is asked for again next time. */
  get(key: string): T | null | Promise<T | null> {
    const known = this.cache.get(key);
    if (known !== undefined) return known;
    const reading = this.reading.get(key);
    if (reading) return reading;
    const promise = new Promise<T | null>((resolve, reject) => {
      if (this.collected.length === 0) setImmediate(() => this.readCollected());
      this.collected.push({ key, resolve, reject });
    }).finally(() => this.reading.delete(key));
    this.reading.set(key, promise);
    return promise;
  }

  private readCollected(): void {
    const all = this.collected;
    this.collected = [];
    for (let from = 0; from < all.length; from += this.options.most)
      void this.readSome(all.slice(from, from + this.options.most));
  }

  private async readSome(asked: typeof this.collected): Promise<void> {
    try {
      const found = new Map<string, T>();
      for (const { key, value, size } of await this.options.read(asked.map(({ key }) => key))) {
        this.cache.set(key, value, size);
        found.set(key, value);
      }
      for (const { key, resolve } of asked) resolve(found.get(key) ?? null);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}
