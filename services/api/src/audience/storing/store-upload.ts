import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { newUuid, uuidText } from '#contracts/ids';
import type { Clock } from '#runtime/clock';
import type { AudienceStore, AudienceTotals } from './audience-store';
import type { BlockReaders } from '../reading/block-readers';
import type { ReadBlock } from '../reading/read-block';
import { readHeader, type Layout } from '../reading/read-header';
import type { ReadingRules } from '../reading/read-recipient';
import { countRecords, RecordSplitter } from '../reading/split-records';
import { TakeBlocks } from './take-blocks';
import { UploadRefused } from './upload-refused';

export interface Upload {
  tenantId: string;
  name: string | null;
  body: AsyncIterable<Buffer>;
  rules: Omit<ReadingRules, 'idKey'>;
  maxBytes: number;
  maxRecipients: number;
  /** Whether to hash the content: two uploads under one Idempotency-Key are compared by it. */
  hashed: boolean;
}

/** All of it is in the database; it appears when it is sealed. */
export interface StoredUpload extends AudienceTotals {
  id: string;
  name: string | null;
  columns: string[];
  createdAt: Date;
  contentHash: Buffer | null;
}

export interface UploadParts {
  readers: BlockReaders;
  store: AudienceStore;
  clock: Clock;
}

/** Large enough that a block's message costs nothing beside its rows, small enough that two threads share a small file. */
const BLOCK_BYTES = 128 * 1024;
const MAX_RECORD_BYTES = 64 * 1024;
/**
 * Rows of any kind, as a multiple of the recipients allowed. Blank, repeated and rejected rows make no recipient and cost time all
 * the same: 200 MB of blank lines, 200 KB when compressed, took 27 s, and 2 s up to the refusal.
 */
const ROWS_A_RECIPIENT = 2;
/** An upload whose client is slow stores nothing for long; the sweep must not take it for abandoned. */
const TOUCH_EVERY_MS = 30_000;

/**
 * Reads a CSV upload of any length in bounded memory: blocks are parsed and validated by threads, then taken in the file's
 * order: first come, first kept. Whatever fails leaves nothing behind.
 */
export async function storeUpload(upload: Upload, parts: UploadParts): Promise<StoredUpload> {
  const storing = new UploadStoring(upload, parts);
  try {
    return await storing.run();
  } catch (error) {
    await storing.undo();
    throw error;
  }
}

class UploadStoring {
  private readonly id: string;
  private readonly createdAt: Date;
  private readonly splitter = new RecordSplitter(BLOCK_BYTES, MAX_RECORD_BYTES);
  private readonly inFlight: Array<Promise<ReadBlock>> = [];
  private taking: TakeBlocks | undefined;
  private layout: Layout | undefined;
  private bytes = 0;
  private touchedMs: number;

  constructor(
    private readonly upload: Upload,
    private readonly parts: UploadParts,
  ) {
    const nowMs = parts.clock.nowMs();
    this.id = uuidText(newUuid(nowMs));
    this.createdAt = new Date(nowMs);
    this.touchedMs = parts.clock.monotonicMs();
  }

  async run(): Promise<StoredUpload> {
    const { upload, splitter } = this;
    const hash = upload.hashed ? createHash('sha256') : null;
    for await (const data of upload.body) {
      this.bytes += data.length;
      if (this.bytes > upload.maxBytes) throw tooLarge(upload.maxBytes);
      hash?.update(data);
      const block = splitter.push(data);
      if (block === 'too_long') throw await this.refusedAt('record_too_long', splitter.wholeRecords());
      if (block !== null) await this.read(block);
      await this.touch();
    }
    if (this.bytes === 0) throw new UploadRefused('upload_empty', 'The upload is empty.');
    const whole = splitter.wholeRecords();
    const { rest, unclosed } = splitter.finish();
    if (unclosed) throw await this.refusedAt('quote_not_closed', whole);
    await this.read(rest);
    while (this.inFlight.length > 0) await this.takeNext();
    const totals = await this.taking!.finish();
    if (totals.accepted + totals.rejected === 0) {
      throw new UploadRefused('upload_empty', 'The file has a header and no rows.', { row: 2 });
    }
    const columns = this.layout!.columns.map(({ name }) => name);
    const contentHash = hash?.digest() ?? null;
    return { id: this.id, name: upload.name, columns, createdAt: this.createdAt, contentHash, ...totals };
  }

  async undo(): Promise<void> {
    await Promise.allSettled(this.inFlight);
    if (this.taking === undefined) return;
    await this.taking.settled();
    // If this fails too, the sweep for abandoned uploads removes it.
    await this.parts.store.discard(this.id).catch(() => undefined);
  }

  private async read(block: Buffer): Promise<void> {
    if (block.length === 0) return;
    const notText = isUtf8(block) ? block.indexOf(0) : firstInvalid(block);
    if (notText !== -1) throw await this.refusedAt('encoding_invalid', block.subarray(0, notText));
    const { readers } = this.parts;
    const text = this.layout === undefined ? await this.begin(block) : block;
    const reading = readers.read(text, this.layout!, this.upload.rules);
    reading.catch(() => undefined); // It is awaited in the file's order; a failure must not be unhandled until then.
    this.inFlight.push(reading);
    while (this.inFlight.length > readers.threads * 2) await this.takeNext();
  }

  private async takeNext(): Promise<void> {
    const { maxRecipients } = this.upload;
    const taking = this.taking!;
    await taking.take(await this.inFlight.shift()!);
    const row = taking.nextRow - 1;
    if (taking.accepted > maxRecipients) {
      const detail = `An audience has at most ${maxRecipients} recipients; make several of this file.`;
      throw new UploadRefused('upload_too_many_rows', detail, { row });
    }
    const maxRows = maxRecipients * ROWS_A_RECIPIENT;
    if (row - 1 > maxRows) {
      const detail = `A file has at most ${maxRows} rows below its header; blank, repeated and rejected ones count. Take out those that are not needed, or make several of this file.`;
      throw new UploadRefused('upload_too_many_rows', detail, { row: maxRows + 2 });
    }
  }

  private async begin(block: Buffer): Promise<Uint8Array> {
    const { id, upload, createdAt } = this;
    const header = readHeader(block.toString('utf8').replaceAll('\r\n', '\n'));
    if (!header.ok) throw new UploadRefused(header.code, header.detail, { row: 1, column: header.column });
    this.layout = header.layout;
    const columns = header.layout.columns.map(({ name }) => name);
    await this.parts.store.begin(id, upload.tenantId, upload.name, columns, createdAt);
    this.taking = new TakeBlocks(id, columns, this.parts.store);
    return Buffer.from(header.rest);
  }

  private async touch(): Promise<void> {
    const nowMs = this.parts.clock.monotonicMs();
    if (this.taking === undefined || nowMs - this.touchedMs < TOUCH_EVERY_MS) return;
    this.touchedMs = nowMs;
    if (!(await this.parts.store.touch(this.id))) throw new Error('the upload was discarded as abandoned while it went on');
  }

  /** `before`: what comes before the fault and is not with the readers yet. */
  private async refusedAt(code: keyof typeof FAULTS_IN_ROW, before: Uint8Array): Promise<UploadRefused> {
    while (this.inFlight.length > 0) await this.takeNext();
    const row = (this.taking?.nextRow ?? 1) + countRecords(before);
    return new UploadRefused(code, `Row ${row}: ${FAULTS_IN_ROW[code]}`, { row });
  }
}

const FAULTS_IN_ROW = {
  record_too_long: `the row is longer than ${MAX_RECORD_BYTES / 1024} KB. Is a quote not closed, or are there no line ends?`,
  quote_not_closed: 'the file ends inside a quoted field of this row. Close the quote, or upload the whole file.',
  encoding_invalid: 'this is not text in UTF-8. Save the file as CSV UTF-8.',
} as const;

function tooLarge(maxBytes: number): UploadRefused {
  return new UploadRefused(
    'upload_too_large',
    `An upload has at most ${Math.floor(maxBytes / 1_048_576)} MiB after decompression; make several of this file.`,
  );
}

/** Where the first byte lies that is not UTF-8: by halving, since a valid start stays valid when cut between characters. */
function firstInvalid(block: Uint8Array): number {
  let good = 0;
  let bad = block.length;
  while (bad - good > 1) {
    let middle = (good + bad) >>> 1;
    // Never cut inside a character: step back over its continuation bytes.
    while (middle > good + 1 && (block[middle]! & 0xc0) === 0x80) middle--;
    if (isUtf8(block.subarray(good, middle))) good = middle;
    else bad = middle;
  }
  return good;
}
