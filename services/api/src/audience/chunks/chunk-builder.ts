import { CHUNK_SIZE } from '#contracts/ids';

/** A chunk whose body is not deflated yet. */
export interface FilledChunk {
  chunk: number;
  count: number;
  /** 8 bytes for each recipient, in order. */
  hashes: Buffer;
  json: Buffer;
}

export interface SealedChunk extends Omit<FilledChunk, 'json'> {
  body: Buffer;
}

const COMMA = 0x2c;
const END = Buffer.from(']}');
const FIRST_GUESS = 48 * 1024;

/** Collects rows into chunks of exactly 500; deflated, they are the bytes that `sealChunk` of the contracts would make. */
export class ChunkBuilder {
  private readonly start: Buffer;
  private json: Buffer;
  private length = 0;
  private hashes: Buffer = Buffer.allocUnsafeSlow(CHUNK_SIZE * 8);
  private inChunk = 0;
  private chunks = 0;

  constructor(columns: readonly string[]) {
    this.start = Buffer.from(`{"columns":${JSON.stringify(columns)},"rows":[`);
    this.json = Buffer.allocUnsafeSlow(FIRST_GUESS);
  }

  get position(): number {
    return this.chunks * CHUNK_SIZE + this.inChunk;
  }

  get chunkCount(): number {
    return this.chunks + (this.inChunk > 0 ? 1 : 0);
  }

  /** How many recipients the chunk under way still takes. */
  get room(): number {
    return CHUNK_SIZE - this.inChunk;
  }

  /** Rows with commas between them, at most `room`, and their hashes. The finished chunk when they filled it. */
  add(rows: Uint8Array, from: number, to: number, hashes: Uint8Array, first: number, count: number): FilledChunk | null {
    const head = this.inChunk === 0 ? this.start.length : 1;
    this.reserve(this.length + head + to - from + END.length);
    if (this.inChunk === 0) this.json.set(this.start, 0);
    else this.json[this.length] = COMMA;
    this.length += head;
    this.json.set(rows.subarray(from, to), this.length);
    this.length += to - from;
    this.hashes.set(hashes.subarray(first * 8, (first + count) * 8), this.inChunk * 8);
    this.inChunk += count;
    return this.inChunk === CHUNK_SIZE ? this.fill() : null;
  }

  /** The last, partly filled one. */
  finish(): FilledChunk | null {
    return this.inChunk > 0 ? this.fill() : null;
  }

  private reserve(wanted: number): void {
    if (wanted <= this.json.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(wanted, this.json.length * 2));
    larger.set(this.json.subarray(0, this.length));
    this.json = larger;
  }

  private fill(): FilledChunk {
    this.json.set(END, this.length);
    const json = this.json.subarray(0, this.length + END.length);
    const filled = { chunk: this.chunks, count: this.inChunk, hashes: this.hashes.subarray(0, this.inChunk * 8), json };
    this.json = Buffer.allocUnsafeSlow(Math.max(FIRST_GUESS, Math.ceil(json.length * 1.1)));
    this.hashes = Buffer.allocUnsafeSlow(CHUNK_SIZE * 8);
    this.chunks++;
    this.inChunk = 0;
    this.length = 0;
    return filled;
  }
}
