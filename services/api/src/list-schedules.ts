import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { ApiParts } from './api-parts';
import type { Call, Outcome } from './call';
import { liveFacts } from './find-schedule';
import { readRow, type ScheduleRow } from './postgres/schedules';
import { refuse } from './problem/problem-table';
import { scheduleView } from './schedule/schedule-view';

const LIST = sqlFile(join(__dirname, 'postgres'), 'list-schedules.sql');

export interface ScheduleFilter {
  limit?: number;
  cursor?: string;
  status?: string[];
  label?: string[];
  dueFrom?: string;
  dueUntil?: string;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export async function listSchedules(parts: ApiParts, call: Call<unknown, ScheduleFilter>): Promise<Outcome> {
  const { limit = 50, cursor, ...filters } = call.query;
  const after = cursor === undefined ? null : readCursor(cursor, filters);
  if (after === undefined || (after !== null && !UUID.test(after)))
    return refuse('cursor_mismatch', {
      errors: [{ parameter: 'cursor', code: 'cursor_mismatch', detail: 'it was made with other filters' }],
    });
  const labels = Object.fromEntries((filters.label ?? []).map(splitLabel));
  const rows = await parts.database.rows<ScheduleRow>(LIST, [
    call.caller.tenantId,
    after,
    filters.status ?? null,
    JSON.stringify(labels),
    // The database reads fewer offsets than the customer may write.
    filters.dueFrom === undefined ? null : new Date(filters.dueFrom),
    filters.dueUntil === undefined ? null : new Date(filters.dueUntil),
    limit + 1,
  ]);
  const found = rows.slice(0, limit).map(readRow);
  const last = found.at(-1);
  return {
    status: 200,
    body: {
      data: found.map((schedule) => scheduleView(schedule.state, liveFacts(schedule))),
      nextCursor: rows.length > limit && last ? makeCursor(last.state.scheduleId, filters) : null,
    },
  };
}

function splitLabel(label: string): [string, string] {
  const colon = label.indexOf(':');
  return [label.slice(0, colon), label.slice(colon + 1)];
}

/** A position and a hash of the filters: with others the position would mean nothing. */
export function makeCursor(position: string, filters: object): string {
  return Buffer.from(JSON.stringify([position, filterHash(filters)])).toString('base64url');
}

/** Undefined: not one of ours, or of another list. */
export function readCursor(cursor: string, filters: object): string | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (!Array.isArray(read) || read.length !== 2 || read[1] !== filterHash(filters)) return undefined;
    return typeof read[0] === 'string' && /^[0-9a-f-]{1,64}$/.test(read[0]) ? read[0] : undefined;
  } catch {
    return undefined;
  }
}

function filterHash(filters: object): string {
  const named = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(named)).digest('hex').slice(0, 16);
}
