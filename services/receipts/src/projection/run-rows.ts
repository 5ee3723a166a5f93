import type { Channel, Mode } from '#contracts/events';
import type { MessageStatus } from '#contracts/words';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { RefusedRange } from '../status/refused-ranges';
import type { RunCount, RunOutcome } from '../status/run-outcome';
import { publicIds, type RunFrame } from './outgoing';

const ENSURE = sqlFile(__dirname, 'ensure-runs.sql');
const OF_SCHEDULES = sqlFile(__dirname, 'runs-of-schedules.sql');
const READ = sqlFile(__dirname, 'read-runs.sql');
const LOCK = sqlFile(__dirname, 'lock-runs.sql');
const UPDATE = sqlFile(__dirname, 'update-runs.sql');
const READ_COUNTS = sqlFile(__dirname, 'read-counts.sql');
const WRITE_COUNTS = sqlFile(__dirname, 'write-counts.sql');
const MARK_ANSWERED = sqlFile(__dirname, 'mark-answered.sql');
const READ_RANGES = sqlFile(__dirname, 'read-ranges.sql');
const INSERT_RANGES = sqlFile(__dirname, 'insert-ranges.sql');
const COUNT_ANSWERED = sqlFile(__dirname, 'count-answered.sql');

export interface RunPlan {
  revision: number;
  external_id: string | null;
  number_id: string;
  slot: string;
  total: number;
  due_at: number;
  valid_until: number | null;
  mode: Mode;
  channel: Channel;
  labels: Record<string, string>;
}

/** A row of receipts.run as it is read under its lock; instants in milliseconds. The plan is null until it was told. */
export interface RunRow extends Omit<
  RunPlan,
  'revision' | 'total' | 'slot' | 'number_id' | 'due_at' | 'mode' | 'channel' | 'labels'
> {
  run_id: Buffer;
  schedule_id: string;
  tenant_id: string;
  revision: number | null;
  number_id: string | null;
  slot: string | null;
  total: number | null;
  due_at: number | null;
  mode: Mode | null;
  channel: Channel | null;
  labels: Record<string, string> | null;
  latest_revision: number;
  released_at: number | null;
  cancelled_at: number | null;
  hold_reason: string | null;
  hold_since: number | null;
  hold_detail: string | null;
  hold_ended_at: number | null;
  hold_sequence: number;
  first_called_at: number | null;
  last_called_at: number | null;
  outcome: RunOutcome | null;
  completed_at: number | null;
  sequence: number;
  untold: boolean;
  evidence_ends_at: number | null;
  has_ranges: boolean;
}

export interface RunOwner {
  runId: Buffer;
  scheduleId: string;
  tenantId: string;
}

export async function ensureRuns(transaction: Queryable, owners: RunOwner[]): Promise<void> {
  if (owners.length === 0) return;
  await transaction.rows(ENSURE, [
    owners.map(({ runId }) => runId),
    owners.map(({ scheduleId }) => scheduleId),
    owners.map(({ tenantId }) => tenantId),
  ]);
}

export async function runsOfSchedules(transaction: Queryable, scheduleIds: string[]): Promise<Buffer[]> {
  if (scheduleIds.length === 0) return [];
  return (await transaction.rows<{ run_id: Buffer }>(OF_SCHEDULES, [scheduleIds])).map(({ run_id }) => run_id);
}

/** Frames of the runs that are planned, without a lock. */
export async function readFrames(database: Queryable, runIds: Buffer[]): Promise<Map<string, RunFrame>> {
  if (runIds.length === 0) return new Map();
  const rows = await database.rows<RunRow>(READ, [runIds]);
  return new Map(rows.map((row) => [row.run_id.toString('hex'), frameOf(row)!]));
}

export function frameOf(row: RunRow): RunFrame | null {
  if (row.revision === null) return null;
  return {
    runId: row.run_id,
    scheduleId: row.schedule_id,
    tenantId: row.tenant_id,
    externalId: row.external_id,
    slot: row.slot!,
    mode: row.mode!,
    channel: row.channel!,
    labels: row.labels!,
    ...publicIds(row.run_id, row.schedule_id, row.tenant_id),
  };
}

export async function lockRuns(transaction: Queryable, runIds: Buffer[]): Promise<Map<string, RunRow>> {
  const rows = await transaction.rows<RunRow>(LOCK, [runIds]);
  return new Map(rows.map((row) => [row.run_id.toString('hex'), row]));
}

export async function updateRuns(transaction: Queryable, rows: RunRow[]): Promise<void> {
  if (rows.length === 0) return;
  await transaction.rows(UPDATE, [JSON.stringify(rows.map((row) => ({ ...row, run_id: row.run_id.toString('hex') })))]);
}

export async function readCounts(transaction: Queryable, runIds: Buffer[]): Promise<Map<string, RunCount[]>> {
  const counts = new Map<string, RunCount[]>(runIds.map((runId) => [runId.toString('hex'), []]));
  const rows = await transaction.rows<{ run_id: Buffer; status: MessageStatus; reason: string; count: number }>(READ_COUNTS, [
    runIds,
  ]);
  for (const { run_id, status, reason, count } of rows) {
    counts.get(run_id.toString('hex'))!.push({ status, reason: reason === '' ? null : reason, count });
  }
  return counts;
}

export async function writeCounts(transaction: Queryable, counts: Array<RunCount & { runId: Buffer }>): Promise<void> {
  if (counts.length === 0) return;
  await transaction.rows(WRITE_COUNTS, [
    counts.map(({ runId }) => runId),
    counts.map(({ status }) => status),
    counts.map(({ reason }) => reason ?? ''),
    counts.map(({ count }) => count),
  ]);
}

export async function markAnswered(transaction: Queryable, answered: Map<Buffer, number[]>): Promise<void> {
  const chunks: Array<{ runId: Buffer; chunk: number; bits: string }> = [];
  for (const [runId, positions] of answered) {
    const byChunk = new Map<number, string[]>();
    for (const position of positions) {
      const chunk = Math.floor(position / 500);
      let bits = byChunk.get(chunk);
      if (!bits) byChunk.set(chunk, (bits = new Array<string>(500).fill('0')));
      bits[position % 500] = '1';
    }
    for (const [chunk, bits] of byChunk) chunks.push({ runId, chunk, bits: bits.join('') });
  }
  if (chunks.length === 0) return;
  await transaction.rows(MARK_ANSWERED, [
    chunks.map(({ runId }) => runId),
    chunks.map(({ chunk }) => chunk),
    chunks.map(({ bits }) => bits),
  ]);
}

export async function readRanges(transaction: Queryable, runIds: Buffer[]): Promise<Map<string, RefusedRange[]>> {
  const ranges = new Map<string, RefusedRange[]>(runIds.map((runId) => [runId.toString('hex'), []]));
  if (runIds.length === 0) return ranges;
  const rows = await transaction.rows<
    Omit<RefusedRange, 'from' | 'until'> & { run_id: Buffer; from_position: number; until_position: number }
  >(READ_RANGES, [runIds]);
  for (const { run_id, from_position: from, until_position: until, ...range } of rows) {
    ranges.get(run_id.toString('hex'))!.push({ ...range, from, until });
  }
  return ranges;
}

export async function insertRanges(transaction: Queryable, ranges: Array<{ runId: Buffer; range: RefusedRange }>): Promise<void> {
  if (ranges.length === 0) return;
  await transaction.rows(INSERT_RANGES, [
    ranges.map(({ runId }) => runId),
    ranges.map(({ range }) => range.revision),
    ranges.map(({ range }) => range.from),
    ranges.map(({ range }) => range.until),
    ranges.map(({ range }) => range.status),
    ranges.map(({ range }) => range.reason),
    ranges.map(({ range }) => range.count),
    ranges.map(({ range }) => range.at),
  ]);
}

/** How many positions of each segment have facts of their own, in the order given. */
export async function countAnswered(
  transaction: Queryable,
  segments: Array<{ runId: Buffer; from: number; until: number }>,
): Promise<number[]> {
  if (segments.length === 0) return [];
  const rows = await transaction.rows<{ answered: number }>(COUNT_ANSWERED, [
    segments.map(({ runId }) => runId),
    segments.map(({ from }) => from),
    segments.map(({ until }) => until),
  ]);
  return rows.map(({ answered }) => answered);
}
