import { deflateRawSync } from 'node:zlib';
import type { FilledChunk, SealedChunk } from './chunks/chunk-builder';
import { DistinctRecipients } from './chunks/distinct-recipients';
import { RecipientChunks, RecipientHasher } from './chunks/recipient-chunks';
import { readRecipient, RECIPIENT_FAULTS, type ReadingRules, type RecipientFault } from './reading/read-recipient';

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
  const filling = new RecipientChunks(columns);
  const hasher = new RecipientHasher(rules.idKey);
  const seen = new DistinctRecipients();
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
    const recipientHash = Buffer.allocUnsafe(8);
    hasher.hash(read.key, recipientHash);
    const first = seen.firstRowOf(recipientHash, 0, index + 1);
    if (first !== 0) return { index, result: 'duplicate', duplicateOf: first - 1 };
    const { position } = filling;
    const full = filling.add(read.recipient, recipientHash);
    if (full) chunks.push(sealed(full));
    return { index, result: 'accepted', position, recipientHash };
  });
  const { last, setHash } = filling.finish();
  if (last) chunks.push(sealed(last));
  return { results, chunks, columns, setHash };
}

function sealed({ json, ...rest }: FilledChunk): SealedChunk {
  return { ...rest, body: deflateRawSync(json, { level: 1 }) };
}
