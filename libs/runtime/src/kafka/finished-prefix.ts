/**
 * Which offset of a partition may be committed when records finish in any order: the one before the oldest unfinished record.
 */
export class FinishedPrefix {
  // A Set keeps the order of insertion, and offsets arrive in order: its first element is the oldest.
  private readonly unfinished = new Set<bigint>();
  private received: bigint | undefined;
  private committed = 0n;

  /** Gaps between offsets (compaction, control records) are no records. */
  receive(offset: bigint): void {
    // The group's position is here or before: committing it would say nothing new.
    if (this.received === undefined) this.committed = offset;
    this.unfinished.add(offset);
    this.received = offset;
  }

  finish(offset: bigint): void {
    this.unfinished.delete(offset);
  }

  get pending(): number {
    return this.unfinished.size;
  }

  /** Where reading would go on after a restart, if that has moved since the last commit. */
  toCommit(): bigint | undefined {
    if (this.received === undefined) return undefined;
    const oldest = this.unfinished.values().next();
    const next = oldest.done ? this.received + 1n : oldest.value;
    return next > this.committed ? next : undefined;
  }

  commitDone(next: bigint): void {
    if (next > this.committed) this.committed = next;
  }
}
