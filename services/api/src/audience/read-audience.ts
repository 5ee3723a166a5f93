import { parseId, uuidText } from '#contracts/ids';
import type { Call, Outcome } from '../call';
import { makeCursor, readCursor } from '../list-schedules';
import { refuse } from '../problem/problem-table';
import type { AudienceParts } from './audience-parts';
import { REJECTED_A_PAGE, type StoredAudience } from './storing/audience-store';
import { audienceView, rejectedView } from './audience-view';

export interface RejectedPage {
  limit?: number;
  cursor?: string;
}

async function findAudience(parts: AudienceParts, call: Call<{ id: string }>): Promise<StoredAudience | null> {
  const id = parseId('aud', call.params.id);
  return id ? parts.store.find(uuidText(id), call.caller.tenantId) : null;
}

export async function readAudience(parts: AudienceParts, call: Call<{ id: string }>): Promise<Outcome> {
  const audience = await findAudience(parts, call);
  return audience ? { status: 200, body: audienceView(audience) } : refuse('audience_not_found');
}

/** In the order of the file. */
export async function listRejected(parts: AudienceParts, call: Call<{ id: string }, RejectedPage>): Promise<Outcome> {
  const audience = await findAudience(parts, call);
  if (!audience) return refuse('audience_not_found');
  const { limit = 50, cursor } = call.query;
  const filters = { audience: audience.id };
  const start = cursor === undefined ? '0' : readCursor(cursor, filters);
  if (start === undefined || !/^\d{1,9}$/.test(start)) {
    return refuse('cursor_mismatch', {
      errors: [{ parameter: 'cursor', code: 'cursor_mismatch', detail: 'it belongs to another list' }],
    });
  }
  const next = Number(start) + limit;
  const rows = await parts.store.rejectedFrom(audience.id, call.caller.tenantId, Number(start), limit);
  return {
    status: 200,
    body: { data: rows.map(rejectedView), nextCursor: next < audience.rejected ? makeCursor(String(next), filters) : null },
  };
}

/** All of them as a CSV file, page by page from the database. */
export async function exportRejected(parts: AudienceParts, call: Call<{ id: string }>): Promise<Outcome> {
  const audience = await findAudience(parts, call);
  if (!audience) return refuse('audience_not_found');
  return {
    status: 200,
    body: null,
    headers: { 'content-disposition': `attachment; filename="${call.params.id.toLowerCase()}-rejected.csv"` },
    stream: { type: 'text/csv; charset=utf-8', parts: rejectedAsCsv(parts, audience) },
  };
}

async function* rejectedAsCsv(parts: AudienceParts, audience: StoredAudience): AsyncGenerator<string> {
  yield 'row,value,code,reason\r\n';
  for (let index = 0; index < audience.rejected; index += REJECTED_A_PAGE) {
    const rows = (await parts.store.rejectedFrom(audience.id, audience.tenantId, index, REJECTED_A_PAGE)).map(rejectedView);
    if (rows.length === 0) return;
    yield rows.map(({ row, value, code, reason }) => `${row},${quoted(guarded(value))},${code},${quoted(reason)}\r\n`).join('');
  }
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Spreadsheets run what begins like a formula; a phone number may begin with plus or minus. */
function guarded(value: string): string {
  return /^[=@\t\r]/.test(value) || (/^[+-]/.test(value) && /[^0-9*+\-().\s/]/.test(value)) ? `'${value}` : value;
}
