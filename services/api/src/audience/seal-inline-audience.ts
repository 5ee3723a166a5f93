import { deflateRawSync } from 'node:zlib';
import { ChunkBuilder, type FilledChunk, type SealedChunk } from './chunk-builder';
import { DistinctRecipients } from './distinct-recipients';
import { readRecipient, RECIPIENT_FAULTS, type ReadingRules, type RecipientFault } from './read-recipient';
import { SetHash } from './set-hash';

export interface InlineRecipient {
  index: number;
  to: string;
  ref?: string | null;
  timeZone?: string | null;
  parameters?: Record<string, string>;
}

export type InlineResult =
  | { index: number; result: 'accepted'; position: number; recipientHash: Buffer }
  | { index: number; result: 'rejected'; error: { code: RecipientFault; detail: string } }
  | { index: number; result: 'duplicate'; duplicateOf: number };

export interface InlineAudience {
  results: InlineResult[];
  chunks: SealedChunk[];
  columns: string[];
  setHash: Buffer;
}

/** The recipients of a request, made into the same sealed chunks as an uploaded file. */
export function prepareInlineAudience(recipients: readonly InlineRecipient[], rules: ReadingRules): InlineAudience {
  const columns = [...new Set(recipients.flatMap((recipient) => Object.keys(recipient.parameters ?? {})))].sort();
  const builder = new ChunkBuilder(columns);
  const seen = new DistinctRecipients();
  const set = new SetHash();
  const chunks: SealedChunk[] = [];
  const results = recipients.map((recipient): InlineResult => {
    const { index } = recipient;
    const parameters = recipient.parameters ?? {};
    const read = readRecipient(
      {
        to: recipient.to,
        ref: recipient.ref ?? null,
        timeZone: recipient.timeZone ?? null,
        values: columns.map((column) => (Object.hasOwn(parameters, column) ? parameters[column]! : null)),
      },
      rules,
    );
    if (!read.ok) return { index, result: 'rejected', error: { code: read.code, detail: RECIPIENT_FAULTS[read.code] } };
    const first = seen.firstRowOf(read.hash, 0, index + 1);
    if (first !== 0) return { index, result: 'duplicate', duplicateOf: first - 1 };
    const { position } = builder;
    const row = Buffer.from(read.row);
    const full = builder.add(row, 0, row.length, read.hash, 0, 1);
    if (full) chunks.push(sealed(full));
    set.add(read.digest);
    return { index, result: 'accepted', position, recipientHash: read.hash };
  });
  const last = builder.finish();
  if (last) chunks.push(sealed(last));
  return { results, chunks, columns, setHash: set.digest(columns) };
}

function sealed({ json, ...rest }: FilledChunk): SealedChunk {
  return { ...rest, body: deflateRawSync(json, { level: 1 }) };
}
