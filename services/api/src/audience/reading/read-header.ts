import Papa from 'papaparse';

/** Where in a row what lies. */
export interface Layout {
  delimiter: string;
  fields: number;
  to: number;
  ref: number | null;
  timeZone: number | null;
  /** Names and places of the parameters. */
  columns: Array<{ name: string; field: number }>;
}

export type HeaderFault =
  | 'header_missing'
  | 'header_number_missing'
  | 'header_name_invalid'
  | 'header_name_twice'
  | 'too_many_columns'
  | 'line_ends_unknown';
export type ReadHeader =
  | { ok: true; layout: Layout; rest: string }
  /** `column` counted from 1; absent where the row as a whole is meant. */
  | { ok: false; code: HeaderFault; detail: string; column?: number };

const MAX_COLUMNS = 64;
const NUMBER_NAMES = new Set(['to', 'phone']);
const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
/** What spreadsheets write, by country: comma, semicolon where the comma is for decimals, tab from a copied range. */
const DELIMITERS = [',', ';', '\t'] as const;

/** `text` is the beginning of a file with LF line ends, at least one whole record. */
export function readHeader(text: string): ReadHeader {
  const withoutMark = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const end = endOfRecord(withoutMark);
  const firstLine = withoutMark.slice(0, end);
  const delimiter = DELIMITERS.reduce((best, one) => (firstLine.split(one).length > firstLine.split(best).length ? one : best));
  const parsed = Papa.parse<string[]>(firstLine, { delimiter, newline: '\n' });
  if (firstLine.includes('\r')) {
    return {
      ok: false,
      code: 'line_ends_unknown',
      detail: 'Rows must end in LF or CR LF; this file has bare CR. Save it again as CSV UTF-8.',
    };
  }
  const names = (parsed.data[0] ?? []).map((name) => name.trim());
  if (names.length === 0 || names.every((name) => name === '')) {
    return { ok: false, code: 'header_missing', detail: 'The first row must name the columns, one of them `to` or `phone`.' };
  }
  const placeOf = (wanted: string): number => names.findIndex((name) => name.toLowerCase() === wanted.toLowerCase());
  const numberFields = names.flatMap((name, field) => (NUMBER_NAMES.has(name.toLowerCase()) ? [field] : []));
  if (numberFields.length !== 1) {
    return {
      ok: false,
      code: 'header_number_missing',
      ...(numberFields.length > 1 ? { column: numberFields[1]! + 1 } : {}),
      detail: `Exactly one column must be called \`to\` or \`phone\`; the header has ${numberFields.length === 0 ? 'none' : 'several'} (it names: ${names.slice(0, 10).join(', ')}).`,
    };
  }
  const ref = placeOf('ref');
  const timeZone = placeOf('timeZone');
  const special = new Set([numberFields[0], ref, timeZone]);
  const columns = names.flatMap((name, field) => (special.has(field) ? [] : [{ name, field }]));
  for (const { name, field } of columns) {
    if (!PARAMETER_NAME.test(name) || name === '__proto__') {
      return {
        ok: false,
        code: 'header_name_invalid',
        column: field + 1,
        detail: `Column ${field + 1} is called "${name.slice(0, 70)}"; names are 1 to 64 letters, digits, _, - or dots.`,
      };
    }
  }
  const twice = names.findIndex(
    (name, field) => name !== '' && names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) !== field,
  );
  if (twice !== -1) {
    return { ok: false, code: 'header_name_twice', column: twice + 1, detail: `Two columns are called "${names[twice]!}".` };
  }
  if (columns.length > MAX_COLUMNS) {
    return {
      ok: false,
      code: 'too_many_columns',
      detail: `At most ${MAX_COLUMNS} columns of parameters are allowed; the header has ${columns.length}.`,
    };
  }
  return {
    ok: true,
    layout: {
      delimiter,
      fields: names.length,
      to: numberFields[0]!,
      ref: ref === -1 ? null : ref,
      timeZone: timeZone === -1 ? null : timeZone,
      columns,
    },
    rest: withoutMark.slice(end + 1),
  };
}

function endOfRecord(text: string): number {
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') quoted = !quoted;
    else if (text[at] === '\n' && !quoted) return at;
  }
  return text.length;
}
