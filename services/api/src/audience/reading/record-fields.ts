/**
 * Reads CSV records (RFC 4180) from bytes: fields are places in the block, so that most of them are copied into their chunk
 * without ever being strings. A quote inside a field that does not begin with one is an ordinary character, as in spreadsheets.
 */
const QUOTE = 0x22;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

export class RecordFields {
  /** Fields of the last record read; more than the layout has are counted but not kept. */
  count = 0;
  readonly from: Int32Array;
  readonly to: Int32Array;
  /** 1 where the field holds doubled quotes or CR LF, which `plain` undoes. */
  readonly changed: Uint8Array;
  /** A quote is not closed, or something follows the closing one. */
  unreadable = false;
  /** Nothing but delimiters. */
  blank = false;
  private readonly delimiter: number;
  private at = 0;

  constructor(
    private readonly block: Uint8Array,
    delimiter: string,
    fields: number,
  ) {
    this.delimiter = delimiter.charCodeAt(0);
    this.from = new Int32Array(fields);
    this.to = new Int32Array(fields);
    this.changed = new Uint8Array(fields);
  }

  /** False at the end of the block. */
  next(): boolean {
    const { block } = this;
    if (this.at >= block.length) return false;
    const start = this.at;
    this.count = 0;
    this.unreadable = false;
    this.blank = true;
    for (;;) {
      const end = block[this.at] === QUOTE ? this.quotedField() : this.plainField();
      if (end === -1) {
        this.unreadable = true;
        this.blank = false;
        this.at = recordEnd(block, start) + 1;
        return true;
      }
      this.at = end + 1;
      if (end >= block.length || block[end] === LINE_FEED) return true;
      // A delimiter as the very last byte is followed by one more, empty field.
      if (this.at === block.length) {
        this.add(this.at, this.at, 0);
        return true;
      }
    }
  }

  /** The bytes of a field as they were meant. */
  plain(field: number): Uint8Array {
    const bytes = this.block.subarray(this.from[field]!, this.to[field]!);
    return this.changed[field] === 0 ? bytes : unescaped(bytes);
  }

  text(field: number): string {
    const bytes = this.plain(field);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  }

  private add(from: number, to: number, changed: 0 | 1): void {
    if (this.count < this.from.length) {
      this.from[this.count] = from;
      this.to[this.count] = to;
      this.changed[this.count] = changed;
    }
    if (to > from) this.blank = false;
    this.count++;
  }

  /** Where the delimiter or line end behind the field stands. */
  private plainField(): number {
    const { block, delimiter } = this;
    const from = this.at;
    let end = from;
    let byte = block[end];
    while (end < block.length && byte !== delimiter && byte !== LINE_FEED) byte = block[++end];
    const atLineEnd = end >= block.length || byte === LINE_FEED;
    this.add(from, atLineEnd && end > from && block[end - 1] === RETURN ? end - 1 : end, 0);
    return end;
  }

  private quotedField(): number {
    const { block, delimiter } = this;
    const from = this.at + 1;
    let changed: 0 | 1 = 0;
    for (let at = from; at < block.length; at++) {
      if (block[at] === RETURN && block[at + 1] === LINE_FEED) changed = 1;
      if (block[at] !== QUOTE) continue;
      if (block[at + 1] === QUOTE) {
        changed = 1;
        at++;
        continue;
      }
      let end = at + 1;
      while (block[end] === SPACE) end++;
      if (block[end] === RETURN && (block[end + 1] === LINE_FEED || end + 1 === block.length)) end++;
      if (end < block.length && block[end] !== delimiter && block[end] !== LINE_FEED) return -1;
      this.add(from, at, changed);
      this.blank = false;
      return end;
    }
    return -1;
  }
}

/** Where the line feed stands that ends a record: the first one with an even number of quotes before it. */
function recordEnd(block: Uint8Array, from: number): number {
  let quoted = false;
  for (let at = from; at < block.length; at++) {
    if (block[at] === QUOTE) quoted = !quoted;
    else if (block[at] === LINE_FEED && !quoted) return at;
  }
  return block.length;
}

function unescaped(bytes: Uint8Array): Uint8Array {
  const plain = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === RETURN && bytes[at + 1] === LINE_FEED) continue;
    if (byte === QUOTE) at++;
    plain[length++] = byte;
  }
  return plain.subarray(0, length);
}
