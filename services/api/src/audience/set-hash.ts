import { createHash } from 'node:crypto';

/**
 * A hash of a set of recipients that does not depend on their order: the sum of their digests in four 32-bit words. Two
 * exports of one list are one audience, however they are sorted.
 */
export class SetHash {
  private readonly sums = new Uint32Array(4);
  private count = 0;

  add(digests: Uint8Array, at = 0): void {
    for (let word = 0; word < 4; word++) {
      const from = at + word * 4;
      const value = ((digests[from]! << 24) | (digests[from + 1]! << 16) | (digests[from + 2]! << 8) | digests[from + 3]!) >>> 0;
      this.sums[word] = this.sums[word]! + value;
    }
    this.count++;
  }

  digest(columns: readonly string[]): Buffer {
    return createHash('sha256')
      .update(JSON.stringify([this.count, columns]))
      .update(new Uint8Array(this.sums.buffer))
      .digest();
  }
}
