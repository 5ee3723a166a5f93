import { RECIPIENT_HASH_BYTES } from '#contracts/ids';

/** Recipients of a run by their hashes: sorted and packed, 8 bytes each, since a run may have millions. */
export class RecipientSet {
  /** `sorted`: hashes in ascending order of their bytes, as PostgreSQL's `ORDER BY` on bytea gives them. */
  constructor(private readonly sorted: Buffer) {
    if (sorted.length % RECIPIENT_HASH_BYTES !== 0) throw new RangeError('hashes are 8 bytes each');
  }

  get size(): number {
    return this.sorted.length / RECIPIENT_HASH_BYTES;
  }

  /** Whether the hash at `offset` of `hashes` is in the set. */
  has(hashes: Buffer, offset: number): boolean {
    const high = hashes.readUInt32BE(offset);
    const low = hashes.readUInt32BE(offset + 4);
    let from = 0;
    let until = this.size;
    while (from < until) {
      const middle = (from + until) >>> 1;
      const at = middle * RECIPIENT_HASH_BYTES;
      const midHigh = this.sorted.readUInt32BE(at);
      const difference = midHigh === high ? this.sorted.readUInt32BE(at + 4) - low : midHigh - high;
      if (difference === 0) return true;
      if (difference < 0) from = middle + 1;
      else until = middle;
    }
    return false;
  }
}
