/**
 * Collects rows as JSON text. UTF-8 that was checked before needs no decoding for that: JSON only escapes quotes, backslashes and
 * control characters, all of them single bytes.
 */
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const NULL = Buffer.from('null');
/** What stands for a byte below 0x20, as JSON.stringify writes it. */
const ESCAPES = Array.from({ length: 0x20 }, (_, code) => Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));

export class RowWriter {
  bytes: Uint8Array;
  length = 0;

  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
  }

  /** Room for a row whose fields hold this many bytes or characters: every one of them could become six. */
  begin(fieldBytes: number, fields: number): void {
    const wanted = this.length + fieldBytes * 6 + fields * 8 + 64;
    if (wanted > this.bytes.length) {
      const larger = new Uint8Array(Math.max(wanted, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
    }
    if (this.length > 0) this.bytes[this.length++] = COMMA;
    this.bytes[this.length++] = OPEN;
  }

  next(): void {
    this.bytes[this.length++] = COMMA;
  }

  end(): void {
    this.bytes[this.length++] = CLOSE;
  }

  null(): void {
    this.bytes.set(NULL, this.length);
    this.length += 4;
  }

  /** Characters below 0x80 that need no escape. */
  ascii(text: string): void {
    const { bytes } = this;
    let at = this.length;
    bytes[at++] = QUOTE;
    for (let index = 0; index < text.length; index++) bytes[at++] = text.charCodeAt(index);
    bytes[at++] = QUOTE;
    this.length = at;
  }

  /** Any text, or null. */
  string(text: string | null): void {
    if (text === null) return this.null();
    const { bytes } = this;
    let at = this.length;
    bytes[at++] = QUOTE;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code < 0x20 || code > 0x7f || code === QUOTE || code === BACKSLASH) {
        const escaped = Buffer.from(JSON.stringify(text));
        bytes.set(escaped, this.length);
        this.length += escaped.length;
        return;
      }
      bytes[at++] = code;
    }
    bytes[at++] = QUOTE;
    this.length = at;
  }

  text(source: Uint8Array, from: number, to: number): void {
    const { bytes } = this;
    let at = this.length;
    bytes[at++] = QUOTE;
    for (let index = from; index < to; index++) {
      const byte = source[index]!;
      if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) {
        bytes[at++] = byte;
      } else if (byte < 0x20) {
        const escape = ESCAPES[byte]!;
        bytes.set(escape, at);
        at += escape.length;
      } else {
        bytes[at++] = BACKSLASH;
        bytes[at++] = byte;
      }
    }
    bytes[at++] = QUOTE;
    this.length = at;
  }
}
