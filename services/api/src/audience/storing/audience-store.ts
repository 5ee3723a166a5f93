import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { SealedChunk } from '../chunks/chunk-builder';
import type { RecipientFault } from '../reading/read-recipient';

const BEGIN = sqlFile(__dirname, 'begin-audience.sql');
const TOUCH = sqlFile(__dirname, 'touch-audience.sql');
const ADD_CHUNKS = sqlFile(__dirname, 'add-chunks.sql');
const ADD_REJECTED = sqlFile(__dirname, 'add-rejected.sql');
const SEAL = sqlFile(__dirname, 'seal-audience.sql');
const DISCARD = sqlFile(__dirname, 'discard-audience.sql');
const DISCARD_ABANDONED = sqlFile(__dirname, 'discard-abandoned.sql');
const FIND = sqlFile(__dirname, 'find-audience.sql');
const LIST_REJECTED = sqlFile(__dirname, 'list-rejected.sql');

export interface RejectedRow {
  /** Counted from 1, the header included: the row as a spreadsheet shows it. */
  row: number;
  value: string;
  code: RecipientFault;
}

export type MissingParameters = Record<string, { count: number; firstRow: number }>;

export interface AudienceWarning {
  code: 'number_valid_both_ways';
  count: number;
  rows: number[];
  detail: string;
}

export interface AudienceTotals {
  accepted: number;
  rejected: number;
  duplicates: number;
  chunkCount: number;
  missing: MissingParameters;
  setHash: Buffer;
  rejectedSample: RejectedRow[];
  warnings: AudienceWarning[];
  /** A few recipients, to show what a message will look like. */
  sample: unknown[];
}

export interface StoredAudience extends AudienceTotals {
  id: string;
  tenantId: string;
  name: string | null;
  source: 'upload' | 'inline';
  columns: string[];
  createdAt: Date;
}

/** What is kept for a repeat of the request, beside the audience itself. */
export interface KeptAnswer {
  record: unknown;
  requestHash: Buffer;
  at: Date;
}

export const REJECTED_A_PAGE = 1_000;

export class AudienceStore {
  constructor(private readonly database: Queryable) {}

  async begin(id: string, tenantId: string, name: string | null, columns: readonly string[], at: Date): Promise<void> {
    await this.database.rows(BEGIN, [id, tenantId, name, columns, at.toISOString()]);
  }

  /** Says that the upload goes on; false when it was given up meanwhile. */
  async touch(id: string): Promise<boolean> {
    return (await this.database.rows(TOUCH, [id])).length === 1;
  }

  /** False when the upload was given up meanwhile. */
  async addChunks(id: string, chunks: readonly SealedChunk[]): Promise<boolean> {
    // As arrays of bytea they would travel as hexadecimal text in quotes; one parameter travels as it is.
    const stored = await this.database.rows(ADD_CHUNKS, [
      id,
      chunks.map((one) => one.chunk),
      chunks.map((one) => one.count),
      Buffer.concat(chunks.map((one) => one.hashes)),
      startsOf(chunks.map((one) => one.hashes)),
      Buffer.concat(chunks.map((one) => one.body)),
      startsOf(chunks.map((one) => one.body)),
      chunks.map((one) => one.body.length),
    ]);
    return stored.length === chunks.length;
  }

  async addRejected(id: string, page: number, rows: readonly RejectedRow[]): Promise<void> {
    await this.database.rows(ADD_REJECTED, [id, page, rows[0]!.row, JSON.stringify(rows)]);
  }

  /** The moment at which the audience appears; false when the upload was given up meanwhile. */
  async seal(id: string, tenantId: string, totals: AudienceTotals, answer: KeptAnswer | null = null): Promise<boolean> {
    const { accepted, rejected, duplicates, chunkCount, missing, setHash, rejectedSample, warnings, sample } = totals;
    const json = [missing, rejectedSample, warnings, sample].map((value) => JSON.stringify(value));
    const sealed = await this.database.rows(SEAL, [
      id,
      tenantId,
      accepted,
      rejected,
      duplicates,
      chunkCount,
      json[0],
      setHash,
      json[1],
      json[2],
      json[3],
      answer && JSON.stringify(answer.record),
      answer?.requestHash,
      answer?.at.toISOString(),
    ]);
    return sealed.length === 1;
  }

  async discard(id: string): Promise<void> {
    await this.database.rows(DISCARD, [id]);
  }

  /** Ids of uploads that stood still for longer than given, and are gone now. */
  async discardAbandoned(idleSeconds: number): Promise<string[]> {
    const gone = await this.database.rows<{ id: string }>(DISCARD_ABANDONED, [idleSeconds]);
    return gone.map(({ id }) => id);
  }

  async find(id: string, tenantId: string): Promise<StoredAudience | null> {
    const [row] = await this.database.rows<{
      id: string;
      name: string | null;
      source: 'upload' | 'inline';
      accepted: number;
      rejected: number;
      duplicates: number;
      chunk_count: number;
      columns: string[];
      missing: MissingParameters;
      set_hash: Buffer;
      rejected_sample: RejectedRow[];
      warnings: AudienceWarning[];
      sample: unknown[];
      created_at: Date;
    }>(FIND, [id, tenantId]);
    if (row === undefined) return null;
    const { chunk_count, set_hash, rejected_sample, created_at, ...same } = row;
    return {
      ...same,
      tenantId,
      chunkCount: chunk_count,
      setHash: set_hash,
      rejectedSample: rejected_sample,
      createdAt: created_at,
    };
  }

  /** Rejected rows in the file's order, from the given one (counted from 0) on; at most a page's worth. */
  async rejectedFrom(id: string, tenantId: string, index: number, limit: number): Promise<RejectedRow[]> {
    const first = Math.floor(index / REJECTED_A_PAGE);
    const pages = await this.database.rows<{ page: number; entries: RejectedRow[] }>(LIST_REJECTED, [id, tenantId, first]);
    const rows = pages.flatMap(({ entries }) => entries);
    return rows.slice(index - first * REJECTED_A_PAGE, index - first * REJECTED_A_PAGE + Math.min(limit, REJECTED_A_PAGE));
  }
}

/** Where each part starts in all of them together, counted from 1 as `substring` does. */
function startsOf(parts: readonly Buffer[]): number[] {
  let next = 1;
  return parts.map(({ length }) => {
    next += length;
    return next - length;
  });
}
