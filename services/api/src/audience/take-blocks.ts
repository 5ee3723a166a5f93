import { openChunk } from '#contracts/audience-chunk';
import {
  REJECTED_A_PAGE,
  type AudienceStore,
  type AudienceTotals,
  type AudienceWarning,
  type MissingParameters,
  type RejectedRow,
} from './audience-store';
import { ChunkBuilder, type SealedChunk } from './chunk-builder';
import { DistinctRecipients } from './distinct-recipients';
import type { ReadBlock } from './read-block';
import { SetHash } from './set-hash';

const CHUNKS_A_STATEMENT = 24;
const REJECTED_SAMPLE = 20;
const WARNING_ROWS = 20;
const SAMPLE = 5;

/** Takes blocks in order: drops repeated recipients, fills chunks, stores them while the next block is read. */
export class TakeBlocks {
  private readonly seen = new DistinctRecipients();
  private readonly set = new SetHash();
  private readonly builder: ChunkBuilder;
  private readonly missing: MissingParameters = {};
  private readonly rejectedSample: RejectedRow[] = [];
  private readonly ambiguousRows: number[] = [];
  private ambiguous = 0;
  private sample: unknown[] = [];
  private row = 2; // The header is row 1.
  private rejected = 0;
  private duplicates = 0;
  private chunks: SealedChunk[] = [];
  private rejectedRows: RejectedRow[] = [];
  private rejectedPages = 0;
  private storing: Promise<void> = Promise.resolve();

  constructor(
    private readonly id: string,
    private readonly columns: string[],
    private readonly store: AudienceStore,
  ) {
    this.builder = new ChunkBuilder(columns);
  }

  get accepted(): number {
    return this.seen.size;
  }

  /** Of the file, the header being row 1. */
  get nextRow(): number {
    return this.row;
  }

  async take(block: ReadBlock): Promise<void> {
    const ambiguous = new Set(block.ambiguous);
    const rows = Buffer.from(block.rows.buffer, block.rows.byteOffset, block.rows.byteLength);
    for (let index = 0; index < block.accepted; index++) {
      const row = this.row + block.recordOf[index]!;
      if (this.seen.firstRowOf(block.hashes, index * 8, row) !== 0) {
        this.duplicates++;
        continue;
      }
      if (ambiguous.has(index)) {
        this.ambiguous++;
        if (this.ambiguousRows.length < WARNING_ROWS) this.ambiguousRows.push(row);
      }
      this.noteMissing(block.missing[index * 2]!, block.missing[index * 2 + 1]!, row);
      this.set.add(block.digests, index * 16);
      const full = this.builder.add(
        rows.subarray(index === 0 ? 0 : block.rowEnds[index - 1]!, block.rowEnds[index]!),
        block.hashes,
        index * 8,
      );
      if (full !== null) await this.keep(full);
    }
    for (const { record, code, value } of block.rejected) await this.reject({ row: this.row + record, value, code });
    this.row += block.records;
  }

  async finish(): Promise<AudienceTotals> {
    const last = this.builder.finish();
    if (last !== null) await this.keep(last);
    if (this.chunks.length > 0) await this.storeChunks();
    if (this.rejectedRows.length > 0) await this.storeRejected();
    await this.storing;
    return {
      accepted: this.seen.size,
      rejected: this.rejected,
      duplicates: this.duplicates,
      chunkCount: this.builder.chunkCount,
      missing: this.missing,
      setHash: this.set.digest(this.columns),
      rejectedSample: this.rejectedSample,
      warnings: this.warnings(),
      sample: this.sample,
    };
  }

  async settled(): Promise<void> {
    await Promise.allSettled([this.storing]);
  }

  private warnings(): AudienceWarning[] {
    if (this.ambiguous === 0) return [];
    return [
      {
        code: 'number_valid_both_ways',
        count: this.ambiguous,
        rows: this.ambiguousRows,
        detail:
          'These numbers have no plus and are valid both as national numbers, as they were taken, and with a country code of their own.',
      },
    ];
  }

  private noteMissing(low: number, high: number, row: number): void {
    if ((low | high) === 0) return;
    this.columns.forEach((column, index) => {
      const left = index < 32 ? (low >>> index) & 1 : (high >>> (index - 32)) & 1;
      if (left === 0) return;
      const noted = (this.missing[column] ??= { count: 0, firstRow: row });
      noted.count++;
    });
  }

  private async reject(row: RejectedRow): Promise<void> {
    this.rejected++;
    if (this.rejectedSample.length < REJECTED_SAMPLE) this.rejectedSample.push(row);
    this.rejectedRows.push(row);
    if (this.rejectedRows.length === REJECTED_A_PAGE) await this.storeRejected();
  }

  private async keep(chunk: SealedChunk): Promise<void> {
    if (chunk.chunk === 0) this.sample = openChunk(chunk.body).slice(0, SAMPLE);
    this.chunks.push(chunk);
    if (this.chunks.length === CHUNKS_A_STATEMENT) await this.storeChunks();
  }

  /** One statement is under way while the next chunks are filled. */
  private async storeChunks(): Promise<void> {
    const chunks = this.chunks;
    this.chunks = [];
    await this.storing;
    this.storing = this.store.addChunks(this.id, chunks).then((stored) => {
      if (!stored) throw new Error('the upload was discarded as abandoned while it went on');
    });
    this.storing.catch(() => undefined);
  }

  private async storeRejected(): Promise<void> {
    const rows = this.rejectedRows;
    const page = this.rejectedPages++;
    this.rejectedRows = [];
    await this.store.addRejected(this.id, page, rows);
  }
}
