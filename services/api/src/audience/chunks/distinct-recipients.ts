/**
 * The recipients seen so far, by their 8-byte hashes: open addressing over two 32-bit words, 16 bytes a slot with the row
 * that came first. A million recipients take 32 MB where a Set of strings takes over 100.
 */
export class DistinctRecipients {
  private slots = 1 << 12;
  private words = new Uint32Array(this.slots * 2);
  private rows = new Uint32Array(this.slots);
  private used = 0;

  get size(): number {
    return this.used;
  }

  /** 0 when the recipient is new, else the row (from 1) where it was first. */
  firstRowOf(hash: Uint8Array, at: number, row: number): number {
    if (this.used * 2 >= this.slots) this.grow();
    const high = read(hash, at);
    const low = read(hash, at + 4);
    return this.place(high, low, row);
  }

  private place(high: number, low: number, row: number): number {
    const mask = this.slots - 1;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const found = this.rows[slot]!;
      if (found === 0) {
        this.words[slot * 2] = high;
        this.words[slot * 2 + 1] = low;
        this.rows[slot] = row;
        this.used++;
        return 0;
      }
      if (this.words[slot * 2] === high && this.words[slot * 2 + 1] === low) return found;
    }
  }

  private grow(): void {
    const { slots, words, rows } = this;
    this.slots = slots * 2;
    this.words = new Uint32Array(this.slots * 2);
    this.rows = new Uint32Array(this.slots);
    this.used = 0;
    for (let slot = 0; slot < slots; slot++) {
      if (rows[slot] !== 0) this.place(words[slot * 2]!, words[slot * 2 + 1]!, rows[slot]!);
    }
  }
}

function read(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}
