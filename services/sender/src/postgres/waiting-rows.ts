import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { WaitingItem } from './gate-port';

const TAKE_WAITING = sqlFile(__dirname, 'take-waiting.sql');
const TAKE_ENDED_WAITING = sqlFile(__dirname, 'take-ended-waiting.sql');
const RELEASE_WAITING = sqlFile(__dirname, 'release-waiting.sql');
const NEXT_WAKE = sqlFile(__dirname, 'next-wake.sql');

interface WaitingRow {
  occurrence_id: Buffer;
  schedule_id: string;
  revision: number;
  number_id: string;
  priority: number;
  position: number;
  attempt: number;
  reason: WaitingItem['reason'];
  due_at: number;
  valid_until: number | null;
  since: number;
  wake_at: number;
  gives_up_at: number;
}

export async function takeWaiting(
  database: Database,
  numbers: ReadonlyArray<{ numberId: string; free: number }>,
  leaseMs: number,
): Promise<WaitingItem[]> {
  const wanted = numbers.filter(({ free }) => free > 0);
  if (wanted.length === 0) return [];
  const rows = await database.rows<WaitingRow>(TAKE_WAITING, [
    wanted.map(({ numberId }) => numberId),
    wanted.map(({ free }) => free),
    leaseMs,
  ]);
  return rows.map(toItem).sort((a, b) => a.priority - b.priority || a.wakeAt - b.wakeAt);
}

export async function takeEndedWaiting(database: Database, limit: number, leaseMs: number): Promise<WaitingItem[]> {
  return (await database.rows<WaitingRow>(TAKE_ENDED_WAITING, [limit, leaseMs])).map(toItem);
}

export async function releaseWaiting(database: Database, occurrenceIds: readonly Buffer[]): Promise<void> {
  if (occurrenceIds.length > 0) await database.rows(RELEASE_WAITING, [occurrenceIds]);
}

export async function nextWakeInMs(database: Database, numberIds: readonly string[]): Promise<number | null> {
  if (numberIds.length === 0) return null;
  const [row] = await database.rows<{ in_ms: number | null }>(NEXT_WAKE, [numberIds]);
  return row?.in_ms ?? null;
}

function toItem(row: WaitingRow): WaitingItem {
  return {
    occurrenceId: row.occurrence_id,
    scheduleId: row.schedule_id,
    revision: row.revision,
    numberId: row.number_id,
    priority: row.priority,
    position: row.position,
    attempt: row.attempt,
    reason: row.reason,
    dueAt: row.due_at,
    validUntil: row.valid_until,
    since: row.since,
    wakeAt: row.wake_at,
    givesUpAt: row.gives_up_at,
  };
}
