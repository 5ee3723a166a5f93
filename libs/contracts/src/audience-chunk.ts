import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** One recipient as it lies in a sealed chunk. */
export interface Recipient {
  /** E.164, with plus. */
  to: string;
  ref: string | null;
  timeZone: string | null;
  parameters: Record<string, string>;
}

/** Column names once, values by row: a chunk of 500 compresses to a few kilobytes. */
interface ChunkBody {
  columns: string[];
  rows: Array<[string, string | null, string | null, ...(string | null)[]]>;
}

/** `columns` fixes the order of the parameters; a recipient without one of them has null there. */
export function sealChunk(columns: readonly string[], recipients: readonly Recipient[]): Buffer {
  const rows = recipients.map((r) => [r.to, r.ref, r.timeZone, ...columns.map((column) => r.parameters[column] ?? null)]);
  return deflateRawSync(JSON.stringify({ columns, rows }), { level: 1 });
}

export function openChunk(body: Uint8Array): Recipient[] {
  const { columns, rows } = JSON.parse(inflateRawSync(body).toString('utf8')) as ChunkBody;
  return rows.map(([to, ref, timeZone, ...values]) => {
    const parameters: Record<string, string> = {};
    columns.forEach((column, index) => {
      const value = values[index];
      if (value !== null && value !== undefined) parameters[column] = value;
    });
    return { to, ref, timeZone, parameters };
  });
}
