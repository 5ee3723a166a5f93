import Papa from 'papaparse';
import type { Layout } from './read-header';
import { readRecipient, type ReadingRules, type RecipientFault } from './read-recipient';

/** The rows of a block by columns: what travels between threads is a few buffers, not thousands of objects. */
export interface ReadBlock {
  /** Records in the block, good, bad or empty. */
  records: number;
  accepted: number;
  /** Of each accepted row: the record it was in the block, from 0. */
  recordOf: Uint32Array;
  hashes: Uint8Array;
  digests: Uint8Array;
  /** JSON of all accepted rows, one after the other, and where each ends. */
  rows: Uint8Array;
  rowEnds: Uint32Array;
  /** Bits of the parameters that a row leaves out, two words a row. */
  missing: Uint32Array;
  ambiguous: number[];
  rejected: Array<{ record: number; code: RecipientFault; value: string }>;
}

/** `text` holds whole records with LF line ends. */
export function readBlock(text: string, layout: Layout, rules: ReadingRules): ReadBlock {
  // Empty lines are counted, so that row numbers are those of a spreadsheet; the line end of the last record starts no new one.
  const whole = text.endsWith('\n') ? text.slice(0, -1) : text;
  const parsed = Papa.parse<string[]>(whole, { delimiter: layout.delimiter, newline: '\n' });
  const records = parsed.data;
  const unreadable = new Set(parsed.errors.filter((error) => error.type === 'Quotes').map((error) => error.row));
  const hashes = Buffer.allocUnsafe(records.length * 8);
  const digests = Buffer.allocUnsafe(records.length * 16);
  const recordOf = new Uint32Array(records.length);
  const rowEnds = new Uint32Array(records.length);
  const missing = new Uint32Array(records.length * 2);
  const rows: string[] = [];
  const ambiguous: number[] = [];
  const rejected: ReadBlock['rejected'] = [];
  let accepted = 0;
  let end = 0;
  records.forEach((fields, record) => {
    const reject = (code: RecipientFault, value: string): void => {
      rejected.push({ record, code, value });
    };
    if (fields.length === 1 && fields[0] === '') return;
    if (unreadable.has(record)) return reject('row_unreadable', '');
    if (fields.length !== layout.fields) return reject('columns_mismatch', `${fields.length} fields, ${layout.fields} columns`);
    let low = 0;
    let high = 0;
    const values = layout.columns.map(({ field }, column) => {
      const value = fields[field]!;
      if (value !== '') return value;
      if (column < 32) low |= 1 << column;
      else high |= 1 << (column - 32);
      return null;
    });
    const read = readRecipient(
      {
        to: fields[layout.to]!,
        ref: layout.ref === null ? null : fields[layout.ref]!.trim(),
        timeZone: layout.timeZone === null ? null : fields[layout.timeZone]!.trim(),
        values,
      },
      rules,
    );
    if (!read.ok) return reject(read.code, read.value);
    hashes.set(read.hash, accepted * 8);
    digests.set(read.digest, accepted * 16);
    recordOf[accepted] = record;
    missing[accepted * 2] = low >>> 0;
    missing[accepted * 2 + 1] = high >>> 0;
    rows.push(read.row);
    end += Buffer.byteLength(read.row);
    rowEnds[accepted] = end;
    if (read.ambiguous) ambiguous.push(accepted);
    accepted++;
  });
  return {
    records: records.length,
    accepted,
    recordOf,
    hashes,
    digests,
    rows: Buffer.from(rows.join('')),
    rowEnds,
    missing,
    ambiguous,
    rejected,
  };
}
