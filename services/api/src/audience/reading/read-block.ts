import { normaliseNumber, readDigits } from '../numbers/normalise-number';
import type { Layout } from './read-header';
import {
  isZone,
  MAX_PARAMETER,
  MAX_REF,
  type ReadingRules,
  type RecipientFault,
  type RejectedValue,
  shownValue,
} from './read-recipient';
import { RecordFields } from './record-fields';
import { RowWriter } from './row-writer';
import { rowDigest } from './row-digest';
import { Hmac } from './hmac';

/** The rows of a block by columns: what travels between threads is a few buffers, not thousands of objects. */
export interface ReadBlock {
  /** Records in the block, good, bad or blank. */
  records: number;
  accepted: number;
  /** Of each accepted row: the record it was in the block, from 0. */
  recordOf: Uint32Array;
  hashes: Uint8Array;
  /** Four words a row. */
  digests: Uint32Array;
  /** The sum of all digests, in four words. */
  digestSum: Uint32Array;
  /** JSON of all accepted rows with commas between them, and where each ends. */
  rows: Uint8Array;
  rowEnds: Uint32Array;
  /** Bits of the parameters that a row leaves out, two words a row; null when no row leaves one out. */
  missing: Uint32Array | null;
  /** Accepted rows whose number could mean two. */
  ambiguous: number[];
  rejected: Array<{ record: number; code: RecipientFault; value: string }>;
}

type Rules = Omit<ReadingRules, 'idKey'>;

const REF_KEY = Buffer.from('ref:');

/** Reads blocks of one key; `block` is whole records in valid UTF-8. */
export class BlockReader {
  private readonly hmac: Hmac;
  private readonly key = new Uint8Array(4 + 4 * MAX_REF);

  constructor(idKey: Uint8Array) {
    this.hmac = new Hmac(idKey);
  }

  read(block: Uint8Array, layout: Layout, rules: Rules): ReadBlock {
    return new BlockReading(block, layout, rules, this.hmac, this.key).run();
  }
}

class BlockReading {
  private readonly fields: RecordFields;
  private readonly rows: RowWriter;
  private readonly most: number;
  private readonly hashes: Uint8Array;
  private readonly digests: Uint32Array;
  private readonly digestSum = new Uint32Array(4);
  private readonly recordOf: Uint32Array;
  private readonly rowEnds: Uint32Array;
  private missing: Uint32Array | null = null;
  private readonly ambiguous: number[] = [];
  private readonly rejected: ReadBlock['rejected'] = [];
  private record = 0;
  private accepted = 0;

  constructor(
    private readonly block: Uint8Array,
    private readonly layout: Layout,
    private readonly rules: Rules,
    private readonly hmac: Hmac,
    private readonly key: Uint8Array,
  ) {
    this.fields = new RecordFields(block, layout.delimiter, layout.fields);
    this.rows = new RowWriter(block.length * 2 + 1_024);
    this.most = countLines(block) + 1;
    this.hashes = new Uint8Array(this.most * 8);
    this.digests = new Uint32Array(this.most * 4);
    this.recordOf = new Uint32Array(this.most);
    this.rowEnds = new Uint32Array(this.most);
  }

  run(): ReadBlock {
    for (; this.fields.next(); this.record++) {
      if (this.fields.blank) continue;
      const refused = this.take();
      if (refused !== null) this.rejected.push({ record: this.record, ...refused });
    }
    const { record: records, accepted, digestSum, missing, ambiguous, rejected } = this;
    return {
      records,
      accepted,
      recordOf: this.recordOf.subarray(0, accepted),
      hashes: this.hashes.subarray(0, accepted * 8),
      digests: this.digests.subarray(0, accepted * 4),
      digestSum,
      rows: this.rows.bytes.subarray(0, this.rows.length),
      rowEnds: this.rowEnds.subarray(0, accepted),
      missing,
      ambiguous,
      rejected,
    };
  }

  /** The same checks in the same order as `readRecipient` makes for recipients of a request. */
  private take(): RejectedValue | null {
    const { fields, layout, rules } = this;
    if (fields.unreadable) return { code: 'row_unreadable', value: '' };
    if (fields.count !== layout.fields) {
      return { code: 'columns_mismatch', value: `${fields.count} fields, ${layout.fields} columns` };
    }
    const number =
      readDigits(this.block, fields.from[layout.to]!, fields.to[layout.to]!, rules) ??
      normaliseNumber(fields.text(layout.to), rules);
    if (!number.ok) return shownValue(number.code, fields.text(layout.to));
    const ref = layout.ref === null ? null : trimmed(fields, layout.ref);
    if (ref !== null && ref.length > MAX_REF && textOf(ref).length > MAX_REF)
      return shownValue('ref_too_long', textOf(ref).slice(0, 40));
    if (rules.distinctBy === 'ref' && ref === null) return shownValue('ref_missing', fields.text(layout.to));
    const timeZone = layout.timeZone === null ? null : trimmed(fields, layout.timeZone);
    if (timeZone !== null && !isZone(textOf(timeZone))) return shownValue('time_zone_unknown', textOf(timeZone).slice(0, 64));
    for (const { field } of layout.columns) {
      if (fields.to[field]! - fields.from[field]! > MAX_PARAMETER && fields.text(field).length > MAX_PARAMETER) {
        return shownValue('parameter_too_long', fields.text(field).slice(0, 40));
      }
    }
    const begin = this.write(number.e164, ref, timeZone);
    this.mark(number.e164, ref, begin);
    if (number.ambiguous) this.ambiguous.push(this.accepted);
    this.accepted++;
    return null;
  }

  /** Where the row begins. */
  private write(e164: string, ref: Uint8Array | null, timeZone: Uint8Array | null): number {
    const { rows, fields, layout, block } = this;
    const last = fields.count - 1;
    rows.begin(fields.to[last]! - fields.from[0]!, fields.count);
    const begin = rows.length - 1;
    rows.ascii(e164);
    rows.next();
    if (ref === null) rows.null();
    else rows.text(ref, 0, ref.length);
    rows.next();
    if (timeZone === null) rows.null();
    else rows.text(timeZone, 0, timeZone.length);
    const { columns } = layout;
    for (let column = 0; column < columns.length; column++) {
      const { field } = columns[column]!;
      rows.next();
      if (fields.from[field] === fields.to[field]) {
        this.noteMissing(column);
        rows.null();
      } else if (fields.changed[field] === 0) {
        rows.text(block, fields.from[field]!, fields.to[field]!);
      } else {
        const plain = fields.plain(field);
        rows.text(plain, 0, plain.length);
      }
    }
    rows.end();
    return begin;
  }

  private mark(e164: string, ref: Uint8Array | null, begin: number): void {
    const { key, rows, accepted, digestSum, digests } = this;
    let length = 0;
    if (this.rules.distinctBy === 'ref') {
      key.set(REF_KEY);
      key.set(ref!, REF_KEY.length);
      length = REF_KEY.length + ref!.length;
    } else {
      for (; length < e164.length; length++) key[length] = e164.charCodeAt(length);
    }
    this.hmac.sign(key, 0, length, this.hashes, accepted * 8, 2);
    rowDigest(rows.bytes, begin, rows.length, digests, accepted * 4);
    for (let word = 0; word < 4; word++) digestSum[word] = digestSum[word]! + digests[accepted * 4 + word]!;
    this.recordOf[accepted] = this.record;
    this.rowEnds[accepted] = rows.length;
  }

  private noteMissing(column: number): void {
    this.missing ??= new Uint32Array(this.most * 2);
    const word = this.accepted * 2 + (column >>> 5);
    this.missing[word] = this.missing[word]! | (1 << (column & 31));
  }
}

function countLines(block: Uint8Array): number {
  let count = 0;
  for (let at = block.indexOf(0x0a); at !== -1; at = block.indexOf(0x0a, at + 1)) count++;
  return count;
}

/** Null for nothing but white space, of whatever script. */
function trimmed(fields: RecordFields, field: number): Uint8Array | null {
  const bytes = fields.plain(field);
  if (bytes.length === 0) return null;
  const first = bytes[0]!;
  const last = bytes[bytes.length - 1]!;
  if (first > 0x20 && first < 0x80 && last > 0x20 && last < 0x80) return bytes;
  const text = textOf(bytes).trim();
  return text === '' ? null : Buffer.from(text);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}
