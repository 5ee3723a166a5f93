import { openChunk } from '#contracts/audience-chunk';
import {
  REJECTED_A_PAGE,
  type AudienceStore,
  type AudienceTotals,
  type AudienceWarning,
  type MissingParameters,
  type RejectedRow,
} from './audience-store';
import { ChunkBuilder, type FilledChunk } from '../chunks/chunk-builder';
import { DistinctRecipients } from '../chunks/distinct-recipients';
import type { ReadBlock } from '../reading/read-block';
import { SetHash } from '../chunks/set-hash';
import { StoreChunks } from './store-chunks';

const REJECTED_SAMPLE = 20;
const WARNING_ROWS = 20;
const SAMPLE = 5;

/** Takes blocks in order: drops repeated recipients, fills chunks, stores them while the next block is read. */
export class TakeBlocks {
  private readonly seen = new DistinctRecipients();
  private readonly set = new SetHash();
  private readonly builder: ChunkBuilder;
  private readonly chunks: StoreChunks;
  private readonly missing: MissingParameters = {};
  private readonly rejectedSample: RejectedRow[] = [];
  private readonly ambiguousRows: number[] = [];
  private ambiguous = 0;
  private row = 2; // The header is row 1.
  private rejected = 0;
  private duplicates = 0;
  private rejectedRows: RejectedRow[] = [];
  private rejectedPages = 0;

  constructor(
    private readonly id: string,
    private readonly columns: string[],
    private readonly store: AudienceStore,
  ) {
    this.builder = new ChunkBuilder(columns);
    this.chunks = new StoreChunks(id, store);
  }

  get accepted(): number {
    return this.seen.size;
  }

  /** Of the file, the header being row 1. */
  get nextRow(): number {
    return this.row;
  }

  async take(block: ReadBlock): Promise<void> {
    this.set.addSum(block.digestSum, block.accepted);
    for (const chunk of this.fillChunks(block)) await this.chunks.add(chunk);
    for (const { record, code, value } of block.rejected) await this.reject({ row: this.row + record, value, code });
    this.row += block.records;
  }

  async finish(): Promise<AudienceTotals> {
    const last = this.builder.finish();
    if (last !== null) await this.chunks.add(last);
    if (this.rejectedRows.length > 0) await this.storeRejected();
    await this.chunks.finish();
    return {
      accepted: this.seen.size,
      rejected: this.rejected,
      duplicates: this.duplicates,
      chunkCount: this.builder.chunkCount,
      missing: this.missing,
      setHash: this.set.digest(this.columns),
      rejectedSample: this.rejectedSample,
      warnings: this.warnings(),
      sample: this.chunks.first ? openChunk(this.chunks.first).slice(0, SAMPLE) : [],
    };
  }

  async settled(): Promise<void> {
    await this.chunks.settled();
  }

  /** Neighbours that are all new go into their chunk together: one copy instead of one a row. */
  private *fillChunks(block: ReadBlock): Generator<FilledChunk> {
    const ambiguous = block.ambiguous.length > 0 ? new Set(block.ambiguous) : null;
    let first = 0;
    for (let index = 0; index < block.accepted; index++) {
      const row = this.row + block.recordOf[index]!;
      const isNew = this.seen.firstRowOf(block.hashes, index * 8, row) === 0;
      if (isNew) {
        if (ambiguous?.has(index)) this.noteAmbiguous(row);
        if (block.missing) this.noteMissing(block.missing[index * 2]!, block.missing[index * 2 + 1]!, row);
      } else {
        this.duplicates++;
        this.set.remove(block.digests, index * 4);
        if (index > first) yield* this.addRun(block, first, index);
        first = index + 1;
      }
      if (isNew && index + 1 - first === this.builder.room) {
        yield* this.addRun(block, first, index + 1);
        first = index + 1;
      }
    }
    if (block.accepted > first) yield* this.addRun(block, first, block.accepted);
  }

  private *addRun({ rows, rowEnds, hashes }: ReadBlock, first: number, end: number): Generator<FilledChunk> {
    const from = first === 0 ? 0 : rowEnds[first - 1]! + 1;
    const filled = this.builder.add(rows, from, rowEnds[end - 1]!, hashes, first, end - first);
    if (filled !== null) yield filled;
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

  private noteAmbiguous(row: number): void {
    this.ambiguous++;
    if (this.ambiguousRows.length < WARNING_ROWS) this.ambiguousRows.push(row);
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

  private async storeRejected(): Promise<void> {
    const rows = this.rejectedRows;
    const page = this.rejectedPages++;
    this.rejectedRows = [];
    await this.store.addRejected(this.id, page, rows);
  }
}
