const START_SLOTS = 1 << 12;
const FILL = 0.6;

/**
 * Counts per key for millions of keys: open addressing over typed arrays, 12 bytes a slot, about 20 to 40 bytes a key. A Map
 * of strings needs 100 and more, and the garbage collector walks it. Keys are 64 bits in two halves.
 */
export class CountTable {
  #high = new Uint32Array(START_SLOTS);
  #low = new Uint32Array(START_SLOTS);
  #counts = new Uint32Array(START_SLOTS);
  #distinct = 0;
  #uncounted = 0;
  #withCount = new Map<number, number>();

  constructor(private readonly maxKeys: number) {}

  get distinct(): number {
    return this.#distinct;
  }

  /** Increments that found no room because `maxKeys` was reached: above zero the histogram is no longer the whole truth. */
  get uncounted(): number {
    return this.#uncounted;
  }

  /** How many keys have each count. */
  histogram(): Record<string, number> {
    const entries = [...this.#withCount.entries()].filter(([, keys]) => keys > 0).sort(([a], [b]) => a - b);
    return Object.fromEntries(entries.map(([count, keys]) => [String(count), keys]));
  }

  /** The new count of the key, or 0 when there was no room for a new one. */
  increment(high: number, low: number): number {
    let slot = this.#find(high, low);
    const before = this.#counts[slot]!;
    if (before === 0) {
      if (this.#distinct >= this.maxKeys) {
        this.#uncounted += 1;
        return 0;
      }
      if (this.#distinct >= this.#counts.length * FILL) {
        this.#grow();
        slot = this.#find(high, low);
      }
      this.#high[slot] = high;
      this.#low[slot] = low;
      this.#distinct += 1;
    } else {
      this.#withCount.set(before, this.#withCount.get(before)! - 1);
    }
    this.#counts[slot] = before + 1;
    this.#withCount.set(before + 1, (this.#withCount.get(before + 1) ?? 0) + 1);
    return before + 1;
  }

  get(high: number, low: number): number {
    return this.#counts[this.#find(high, low)]!;
  }

  #find(high: number, low: number): number {
    const mask = this.#counts.length - 1;
    let mixed = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
    mixed ^= mixed >>> 15;
    let slot = mixed & mask;
    while (this.#counts[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const [high, low, counts] = [this.#high, this.#low, this.#counts];
    this.#high = new Uint32Array(counts.length * 2);
    this.#low = new Uint32Array(counts.length * 2);
    this.#counts = new Uint32Array(counts.length * 2);
    for (let old = 0; old < counts.length; old += 1) {
      if (counts[old] === 0) continue;
      const slot = this.#find(high[old]!, low[old]!);
      this.#high[slot] = high[old]!;
      this.#low[slot] = low[old]!;
      this.#counts[slot] = counts[old]!;
    }
  }
}

export interface CountKey {
  high: number;
  low: number;
}

const TWO_TO_32 = 4_294_967_296;

/** Exact for up to 15 digits. Anything else (business-scoped user ids, tokens) is hashed to 64 bits. */
export function recipientKey(recipient: string): CountKey {
  if (/^[1-9][0-9]{0,14}$/.test(recipient)) {
    const value = Number(recipient);
    return { high: Math.floor(value / TWO_TO_32), low: value >>> 0 };
  }
  return textKey(recipient);
}

/** Two 32-bit hashes: among eight million tokens the chance that any two meet is about two in a million. */
export function textKey(text: string): CountKey {
  let first = 0x811c9dc5;
  let second = 0x9747b28c;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    first = Math.imul(first ^ unit, 0x01000193);
    second = Math.imul(second ^ unit, 0x5bd1e995);
    second ^= second >>> 13;
  }
  first ^= first >>> 16;
  first = Math.imul(first, 0x85ebca6b);
  first ^= first >>> 13;
  return { high: first >>> 0, low: second >>> 0 };
}
