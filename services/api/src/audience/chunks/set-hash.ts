import { createHash } from 'node:crypto';

/**
 * A hash of a set of recipients that does not depend on their order: the sum of their digests in four 32-bit words. Two
 * exports of one list are one audience, however they are sorted.
 */
export class SetHash {
  private readonly sums = new Uint32Array(4);
  private count = 0;

  add(digests: Uint32Array, at = 0): void {
    for (let word = 0; word < 4; word++) this.sums[word] = this.sums[word]! + digests[at + word]!;
    this.count++;
  }

  /** Takes one digest out again. */
  remove(digests: Uint32Array, at: number): void {
    for (let word = 0; word < 4; word++) this.sums[word] = this.sums[word]! - digests[at + word]!;
    this.count--;
  }

  /** Many at once, added up before. */
  addSum(sum: Uint32Array, count: number): void {
    for (let word = 0; word < 4; word++) this.sums[word] = this.sums[word]! + sum[word]!;
    this.count += count;
  }

  digest(columns: readonly string[]): Buffer {
    return createHash('sha256')
      .update(JSON.stringify([this.count, columns, ...this.sums]))
      .digest();
  }
}
