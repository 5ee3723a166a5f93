import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { uuidBytes, uuidText } from '#contracts/ids';
import type { Look } from '../planning/next-look';
import type { Slice } from '../planning/slice';

const PICK = sqlFile(__dirname, 'pick-slices.sql');
const ADVANCE = sqlFile(__dirname, 'advance-slices.sql');
const SET_ASIDE = sqlFile(__dirname, 'set-aside.sql');
const NOTHING = Buffer.alloc(0);

interface PickedRow {
  run_id: Buffer | null;
  schedule_id: string;
  number_id: string;
  provider_identity: string;
  revision: number;
  priority: number;
  pass: number;
  leave_out: 'claimed' | 'answered' | null;
  start_tag: string;
  from_position: number;
  until_position: number;
  quota: number;
  due_at_ms: string;
  valid_until_ms: string | null;
  traceparent: string | null;
  hashes: Buffer | null;
  now_ms: number;
  next_due_ms: number | null;
  woken: number;
  set_aside: number;
  skipped: number;
  unserved: boolean;
  more: boolean;
}

export interface PickLimits {
  leaseMs: number;
  creditAgeMs: number;
  /** Entries woken in one statement. */
  wake: number;
  numbers: number;
  /** Runs of one number that are looked at. */
  runs: number;
  records: number;
  lookAheadMs: number;
}

export interface Picked {
  slices: Slice[];
  look: Look;
  /** PostgreSQL's clock when the slices were picked. */
  nowMs: number;
}

export async function pickSlices(database: Database, holder: string, limits: PickLimits): Promise<Picked> {
  const { leaseMs, creditAgeMs, wake, numbers, runs, records, lookAheadMs } = limits;
  const rows = await database.rows<PickedRow>(PICK, [holder, leaseMs, creditAgeMs, wake, numbers, runs, records, lookAheadMs]);
  const slices: Slice[] = [];
  let last: PickedRow | undefined;
  for (const row of rows) {
    if (row.run_id === null) last = row;
    else slices.push(toSlice(row.run_id, row));
  }
  if (!last) throw new Error('pick_slices did not say what the clock is');
  return {
    slices,
    nowMs: Math.floor(last.now_ms),
    look: {
      slices: slices.length,
      woken: last.woken,
      setAside: last.set_aside,
      skipped: last.skipped,
      nextDueInMs: last.next_due_ms === null ? null : last.next_due_ms - last.now_ms,
      unserved: last.unserved,
      more: last.more,
    },
  };
}

function toSlice(runId: Buffer, row: PickedRow): Slice {
  return {
    runId,
    scheduleId: uuidBytes(row.schedule_id),
    numberId: uuidBytes(row.number_id),
    providerIdentity: row.provider_identity,
    revision: row.revision,
    priority: row.priority,
    pass: row.pass,
    leaveOut: row.leave_out,
    startTag: Number(row.start_tag),
    from: row.from_position,
    until: row.until_position,
    quota: row.quota,
    dueAt: Number(row.due_at_ms),
    validUntil: row.valid_until_ms === null ? null : Number(row.valid_until_ms),
    traceparent: row.traceparent,
    hashes: row.hashes ?? NOTHING,
  };
}

/** What became of a slice: how many were handed over, and where its cursor goes. */
export interface Handed {
  slice: Slice;
  until: number;
  released: number;
}

export async function advanceSlices(
  database: Database,
  holder: string,
  handed: readonly Handed[],
  checkAfterMs: number,
): Promise<{ moved: number; finished: number }> {
  const [row] = await database.rows<{ moved: number; finished: number }>(ADVANCE, [
    holder,
    handed.map(({ slice }) => slice.runId),
    handed.map(({ slice }) => slice.revision),
    handed.map(({ slice }) => slice.pass),
    handed.map(({ slice }) => slice.from),
    handed.map(({ until }) => until),
    handed.map(({ released }) => released),
    handed.map(({ slice }) => uuidText(slice.numberId)),
    handed.map(({ slice }) => slice.priority),
    handed.map(({ slice }) => slice.startTag),
    checkAfterMs,
  ]);
  return row!;
}

/** Runs whose audience lacks what it should hold: out of the way, looked at again by the sweep. */
export async function setAside(database: Database, runIds: readonly Buffer[]): Promise<void> {
  await database.rows(SET_ASIDE, [runIds]);
}
