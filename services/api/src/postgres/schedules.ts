import type { Database } from '#runtime/postgres/database';
import { retrying } from '#runtime/postgres/retrying';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { ExistingSchedule } from '../schedule/schedule-state';
import type { GateChange } from '../schedule/gate-change';
import type { ScheduleEvent } from '../schedule/schedule-events';

const FIND = sqlFile(__dirname, 'find-schedule.sql');
const APPEND = sqlFile(__dirname, 'append.sql');
const FIND_EXISTING = sqlFile(__dirname, 'find-existing.sql');
const COUNT_CLAIMS = sqlFile(__dirname, 'count-claims.sql');

export type ScheduleKey = { id: string } | { externalId: string } | { runId: Buffer };

/** A schedule with what others know of it now. */
export interface FoundSchedule {
  state: ExistingSchedule;
  outcome: string | null;
  completedAtMs: number | null;
  runHoldReason: string | null;
  numberHold: { reason: string; sinceMs: number | null; untilMs: number | null } | null;
}

export interface ScheduleRow {
  state: ExistingSchedule;
  outcome: string | null;
  completed_at: Date | null;
  run_hold_reason: string | null;
  number_hold_reason: string | null;
  number_hold_since: Date | null;
  number_hold_until: Date | null;
}

export async function findSchedule(database: Database, tenantId: string, key: ScheduleKey): Promise<FoundSchedule | null> {
  const id = 'id' in key ? key.id : null;
  const externalId = 'externalId' in key ? key.externalId : null;
  const runId = 'runId' in key ? key.runId : null;
  const [row] = await database.rows<ScheduleRow>(FIND, [tenantId, id, externalId, runId]);
  return row ? readRow(row) : null;
}

export function readRow(row: ScheduleRow): FoundSchedule {
  return {
    state: row.state,
    outcome: row.outcome,
    completedAtMs: row.completed_at?.getTime() ?? null,
    runHoldReason: row.run_hold_reason,
    numberHold: row.number_hold_reason
      ? {
          reason: row.number_hold_reason,
          sinceMs: row.number_hold_since?.getTime() ?? null,
          untilMs: row.number_hold_until?.getTime() ?? null,
        }
      : null,
  };
}

export interface OutboxRow {
  topic: string;
  key: string;
  headers: Record<string, string>;
  value: Buffer;
}

export interface InlineAudience {
  id: string;
  accepted: number;
  rejected: number;
  duplicates: number;
  columns: string[];
  missing: Record<string, { count: number; firstRow: number }>;
  setHash: Buffer;
  chunks: ReadonlyArray<{ count: number; hashes: Buffer; body: Buffer }>;
}

/** One command's whole write. */
export interface Append {
  state: ExistingSchedule;
  event: ScheduleEvent;
  gate: GateChange | null;
  outbox: OutboxRow;
  correlationId: string;
  traceparent: string | null;
  /** Undefined: leave it as it is. */
  duplicateHash?: Buffer | null;
  audience: InlineAudience | null;
  answer: Record<string, unknown> | null;
  requestHash: Buffer | null;
}

/**
 * Refusals come as errors with a SQLSTATE or a constraint's name (see 002-functions.sql), with everything rolled back.
 * A lock time-out is one too (the gate or the row is busy for longer than a second), so trying again a few times is safe.
 */
export async function append(database: Database, write: Append): Promise<void> {
  const { state, event, gate, outbox, audience } = write;
  const { definition } = state;
  const writesContent = event.name === 'requested' || event.name === 'revised';
  const command = {
    scheduleId: state.scheduleId,
    tenantId: state.tenantId,
    expectedVersion: state.version - 1,
    at: instant(event.atMs),
    actor: event.by,
    correlationId: write.correlationId,
    traceparent: write.traceparent,
    keepDuplicateHash: write.duplicateHash === undefined,
    snapshot: {
      externalId: state.externalId,
      version: state.version,
      revision: state.revision,
      status: state.status,
      numberId: definition.number.id,
      audienceId: definition.audience.id,
      recipients: definition.audience.accepted,
      runId: state.runId,
      dueAt: instant(definition.slot.dueAtMs),
      labels: definition.labels,
    },
    state,
    events: [{ name: event.name, data: event.data }],
    content: writesContent
      ? {
          revision: state.revision,
          audienceId: definition.audience.id,
          content: definition.content,
          category: definition.category,
          mode: state.mode,
          labels: definition.labels,
          externalId: state.externalId,
        }
      : null,
    audience: audience
      ? {
          id: audience.id,
          accepted: audience.accepted,
          rejected: audience.rejected,
          duplicates: audience.duplicates,
          columns: audience.columns,
          missing: audience.missing,
          setHash: audience.setHash.toString('hex'),
        }
      : null,
    gate: gate ? [gate] : [],
    outbox: [{ lane: laneOf(state.scheduleId), topic: outbox.topic, key: outbox.key, headers: outbox.headers }],
    idempotency: write.answer,
  };
  const chunks = audience?.chunks ?? [];
  const values = [
    JSON.stringify(command),
    write.requestHash,
    write.duplicateHash ?? null,
    chunks.map((chunk) => chunk.count),
    chunks.map((chunk) => chunk.hashes),
    chunks.map((chunk) => chunk.body),
    [outbox.value],
  ];
  await retrying(() => database.rows(APPEND, values), { states: ['55P03'], attempts: 4 });
}

export async function findExisting(
  database: Database,
  tenantId: string,
  by: { duplicateHash: Buffer } | { externalId: string },
): Promise<string | null> {
  const values = 'externalId' in by ? [tenantId, null, by.externalId] : [tenantId, by.duplicateHash, null];
  const [row] = await database.rows<{ id: string }>(FIND_EXISTING, values);
  return row?.id ?? null;
}

/** Messages of a run that the gate has answered already. */
export async function countClaims(database: Database, runId: Buffer): Promise<number> {
  const [row] = await database.rows<{ claimed: number }>(COUNT_CLAIMS, [runId]);
  return row?.claimed ?? 0;
}

export function instant(ms: number): string {
  return new Date(ms).toISOString();
}

const LANES = 16;

/** Negative: the relay computes the partition. One lane for each schedule, so that its events stay in order, spread over all relays. */
function laneOf(scheduleId: string): number {
  return -1 - (Number.parseInt(scheduleId.slice(-2), 16) % LANES);
}
