/** A queue whose shift does not move everything else: lanes hold thousands and are emptied one by one. */
export class Fifo<T> {
  private items: Array<T | undefined> = [];
  private head = 0;

  get size(): number {
    return this.items.length - this.head;
  }

  push(item: T): void {
    this.items.push(item);
  }

  peek(): T | undefined {
    return this.items[this.head];
  }

  shift(): T | undefined {
    const item = this.items[this.head];
    if (item === undefined) return undefined;
    this.items[this.head++] = undefined;
    if (this.head > 256 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }

  /** In front of everything, in the order given. */
  unshiftAll(items: readonly T[]): void {
    this.items = [...items, ...this.items.slice(this.head)];
    this.head = 0;
  }

  some(matches: (item: T) => boolean): boolean {
    for (let i = this.head; i < this.items.length; i++) if (matches(this.items[i]!)) return true;
    return false;
  }

  /** Takes out what matches and answers it. */
  remove(matches: (item: T) => boolean): T[] {
    const removed: T[] = [];
    const kept: T[] = [];
    for (let i = this.head; i < this.items.length; i++) (matches(this.items[i]!) ? removed : kept).push(this.items[i]!);
    if (removed.length > 0) {
      this.items = kept;
      this.head = 0;
    }
    return removed;
  }
}
