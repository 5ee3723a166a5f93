import { deflateRawSync } from 'node:zlib';
import { CHUNK_SIZE } from '#contracts/ids';

export interface SealedChunk {
  chunk: number;
  count: number;
  /** 8 bytes for each recipient, in order. */
  hashes: Buffer;
  body: Buffer;
}

const COMMA = Buffer.from(',');
const END = Buffer.from(']}');

/** Collects rows into chunks of exactly 500; the bytes are those that `sealChunk` of the contracts would make. */
export class ChunkBuilder {
  private readonly start: Buffer;
  private rows: Uint8Array[] = [];
  private hashes: Buffer = Buffer.allocUnsafe(CHUNK_SIZE * 8);
  private inChunk = 0;
  private chunks = 0;

  constructor(columns: readonly string[]) {
    this.start = Buffer.from(`{"columns":${JSON.stringify(columns)},"rows":[`);
  }

  get position(): number {
    return this.chunks * CHUNK_SIZE + this.inChunk;
  }

  get chunkCount(): number {
    return this.chunks + (this.inChunk > 0 ? 1 : 0);
  }

  /** The finished chunk when this row filled one. */
  add(row: Uint8Array, hashes: Uint8Array, at: number): SealedChunk | null {
    if (this.inChunk > 0) this.rows.push(COMMA);
    this.rows.push(row);
    this.hashes.set(hashes.subarray(at, at + 8), this.inChunk * 8);
    this.inChunk++;
    return this.inChunk === CHUNK_SIZE ? this.seal() : null;
  }

  /** The last, partly filled one. */
  finish(): SealedChunk | null {
    return this.inChunk > 0 ? this.seal() : null;
  }

  private seal(): SealedChunk {
    const body = deflateRawSync(Buffer.concat([this.start, ...this.rows, END]), { level: 1 });
    const sealed = {
      chunk: this.chunks,
      count: this.inChunk,
      hashes: Buffer.from(this.hashes.subarray(0, this.inChunk * 8)),
      body,
    };
    this.chunks++;
    this.inChunk = 0;
    this.rows = [];
    return sealed;
  }
}
