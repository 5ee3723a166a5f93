/**
 * Cuts a CSV stream into blocks that end where a record ends, so that they can be parsed apart. A line end inside quotes
 * belongs to its field: what counts is whether the number of quotes before it is even (RFC 4180; a doubled quote changes nothing).
 */
const QUOTE = 0x22;
const LINE_FEED = 0x0a;

export class RecordSplitter {
  private held: Buffer[] = [];
  private heldBytes = 0;
  /** How many of the held bytes are whole records. */
  private cutAt = 0;
  private quoted = false;

  constructor(
    private readonly blockBytes: number,
    /** A record longer than this is none: a quote was never closed, or the file is no CSV. */
    private readonly maxRecordBytes: number,
  ) {}

  /** A block of whole records when enough have come; `too_long` when a record does not end. */
  push(data: Buffer): Buffer | 'too_long' | null {
    const cut = this.lastRecordEnd(data);
    if (cut >= 0) this.cutAt = this.heldBytes + cut + 1;
    this.held.push(data);
    this.heldBytes += data.length;
    if (this.heldBytes - this.cutAt > this.maxRecordBytes) return 'too_long';
    return this.cutAt > 0 && this.heldBytes >= this.blockBytes ? this.take(this.cutAt) : null;
  }

  /** The whole records among the held bytes: those before the one that does not end. */
  wholeRecords(): Buffer {
    return Buffer.concat(this.held).subarray(0, this.cutAt);
  }

  /** What is left, and whether it ends inside quotes. */
  finish(): { rest: Buffer; unclosed: boolean } {
    return { rest: this.take(this.heldBytes), unclosed: this.quoted };
  }

  private lastRecordEnd(data: Buffer): number {
    let cut = -1;
    let from = 0;
    for (;;) {
      const quote = data.indexOf(QUOTE, from);
      const end = quote === -1 ? data.length : quote;
      if (!this.quoted && end > from) {
        const feed = data.lastIndexOf(LINE_FEED, end - 1);
        if (feed >= from) cut = feed;
      }
      if (quote === -1) return cut;
      this.quoted = !this.quoted;
      from = quote + 1;
    }
  }

  private take(bytes: number): Buffer {
    const all = this.held.length === 1 ? this.held[0]! : Buffer.concat(this.held);
    const rest = all.subarray(bytes);
    this.held = rest.length > 0 ? [rest] : [];
    this.heldBytes = rest.length;
    this.cutAt = 0;
    return all.subarray(0, bytes);
  }
}

/** How many records begin before this byte of a block. */
export function countRecords(block: Uint8Array, end = block.length): number {
  let count = 0;
  let quoted = false;
  for (let at = 0; at < end; at++) {
    if (block[at] === QUOTE) quoted = !quoted;
    else if (block[at] === LINE_FEED && !quoted) count++;
  }
  return count;
}
