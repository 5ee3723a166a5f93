import { CHUNK_SIZE } from '#contracts/ids';
import { ChunkBuilder, type FilledChunk } from './chunk-builder';
import { Hmac } from '../reading/hmac';
import { rowDigest } from '../reading/row-digest';
import { RowWriter } from '../reading/row-writer';
import { SetHash } from './set-hash';

export interface ValidRecipient {
  /** E.164. */
  to: string;
  ref: string | null;
  timeZone: string | null;
  /** In the order of the audience's columns; null where there is none. */
  values: ReadonlyArray<string | null>;
}

/** Fills chunks with recipients that are known to be valid and different. */
export class RecipientChunks {
  private readonly builder: ChunkBuilder;
  private readonly rows = new RowWriter(64 * 1024);
  private readonly hashes = new Uint8Array(CHUNK_SIZE * 8);
  private readonly set = new SetHash();
  private readonly digest = new Uint32Array(4);
  private inRows = 0;

  constructor(private readonly columns: readonly string[]) {
    this.builder = new ChunkBuilder(columns);
  }

  get position(): number {
    return this.builder.position + this.inRows;
  }

  /** `hash` is the recipient's of `RecipientHasher`. The chunk that it filled, if it did. */
  add({ to, ref, timeZone, values }: ValidRecipient, hash: Uint8Array): FilledChunk | null {
    const { rows } = this;
    let characters = to.length + (ref?.length ?? 0) + (timeZone?.length ?? 0);
    for (const value of values) characters += value?.length ?? 0;
    const begin = rows.length + (rows.length > 0 ? 1 : 0);
    rows.begin(characters, values.length + 3);
    rows.ascii(to);
    rows.next();
    rows.string(ref);
    rows.next();
    rows.string(timeZone);
    for (const value of values) {
      rows.next();
      rows.string(value);
    }
    rows.end();
    rowDigest(rows.bytes, begin, rows.length, this.digest, 0);
    this.set.add(this.digest);
    this.hashes.set(hash, this.inRows * 8);
    this.inRows++;
    return this.inRows === CHUNK_SIZE ? this.flush() : null;
  }

  /** The last chunk, if there is one under way, and what the audience is recognised by. */
  finish(): { last: FilledChunk | null; chunkCount: number; setHash: Buffer } {
    const last = this.inRows > 0 ? (this.flush() ?? this.builder.finish()) : null;
    return { last, chunkCount: this.builder.chunkCount, setHash: this.set.digest(this.columns) };
  }

  private flush(): FilledChunk | null {
    const filled = this.builder.add(this.rows.bytes, 0, this.rows.length, this.hashes, 0, this.inRows);
    this.rows.length = 0;
    this.inRows = 0;
    return filled;
  }
}

/** 8 bytes that stand for a recipient, as `recipientHash` of the contracts makes them. */
export class RecipientHasher {
  private readonly hmac: Hmac;
  private readonly key = Buffer.alloc(1_024);

  constructor(idKey: Uint8Array) {
    this.hmac = new Hmac(idKey);
  }

  /** `recipientKey`: the number, or `ref:` and the ref. */
  hash(recipientKey: string, into: Uint8Array): void {
    this.hmac.sign(this.key, 0, this.key.write(recipientKey), into, 0, 2);
  }
}
