import type { Codec } from '#contracts/codec';
import { uuidText } from '#contracts/ids';
import type { Queryable } from '#runtime/postgres/database';
import { endedOf, outcomeOf, runStatusOf, type RunCount } from '../status/run-outcome';
import type { RunEvent, ScheduleEvent } from './items';
import { publicIds, runCompleted, scheduleHeld, scheduleHoldEnded, type Hold, type Outgoing, type ToldRun } from './outgoing';
import { projectRanges } from './project-ranges';
import type { RunDelta } from './run-delta';
import { ensureRuns, frameOf, lockRuns, markAnswered, readCounts, updateRuns, writeCounts, type RunRow } from './run-rows';

export interface ProjectedRuns {
  rows: Map<string, RunRow>;
  /** Runs whose plan came with this batch: messages known before it have not been told. */
  newlyPlanned: Buffer[];
  outgoing: Outgoing[];
}

/**
 * Applies what a batch changes in its runs. The last locks of the transaction, since a campaign's run is in every batch of
 * every instance.
 */
export async function projectRuns(
  transaction: Queryable,
  codec: Codec,
  deltas: RunDelta[],
  nowMs: number,
  evidenceWindowMs: number,
): Promise<ProjectedRuns> {
  const outgoing: Outgoing[] = [];
  const newlyPlanned: Buffer[] = [];
  if (deltas.length === 0) return { rows: new Map(), newlyPlanned, outgoing };
  await ensureRuns(
    transaction,
    deltas.map(({ owner }) => owner).filter((owner) => owner !== null),
  );
  const rows = await lockRuns(
    transaction,
    deltas.map(({ runId }) => runId),
  );
  const known = deltas.flatMap((delta) => {
    const row = rows.get(delta.runId.toString('hex'));
    return row ? [{ delta, row, latestBefore: row.latest_revision }] : [];
  });

  for (const { delta, row } of known) {
    const planned = row.revision !== null;
    for (const told of delta.events) applyRunEvent(row, told, (hold) => outgoing.push(scheduleHeld(codec, hold, nowMs)));
    for (const told of delta.scheduleEvents) {
      applyScheduleEvent(row, told, (hold) => outgoing.push(scheduleHoldEnded(codec, hold, nowMs)));
    }
    if (!planned && row.revision !== null) newlyPlanned.push(row.run_id);
    row.first_called_at = least(row.first_called_at, delta.firstCalledAt);
    row.last_called_at = greatest(row.last_called_at, delta.lastCalledAt);
  }

  await projectRanges(transaction, known);
  await markAnswered(transaction, new Map(known.map(({ delta }) => [delta.runId, delta.answered])));

  const counts = await readCounts(
    transaction,
    known.map(({ delta }) => delta.runId),
  );
  const written: Array<RunCount & { runId: Buffer }> = [];
  for (const { delta, row } of known) {
    const before = counts.get(row.run_id.toString('hex'))!;
    const moved = delta.counts.applyTo(before);
    written.push(...moved.map((count) => ({ ...count, runId: row.run_id })));
    const after = merged(before, moved);
    outgoing.push(...settle(codec, row, after, moved.length > 0, nowMs, evidenceWindowMs));
  }
  await writeCounts(transaction, written);
  await updateRuns(
    transaction,
    known.map(({ row }) => row),
  );
  return { rows, newlyPlanned, outgoing };
}

function applyRunEvent(row: RunRow, { name, event }: RunEvent, onHeld: (hold: Hold) => void): void {
  switch (name) {
    case 'RunPlanned':
      row.latest_revision = Math.max(row.latest_revision, event.revision);
      if (row.revision !== null && row.revision >= event.revision) return;
      Object.assign(row, {
        revision: event.revision,
        external_id: event.externalId,
        number_id: uuidText(event.numberId),
        slot: event.slot,
        total: event.total,
        due_at: event.dueAt,
        valid_until: event.validUntil,
        mode: event.mode,
        channel: event.channel,
        labels: event.labels,
      });
      return;
    case 'RecipientsRefused':
      row.latest_revision = Math.max(row.latest_revision, event.revision);
      if (event.status === 'cancelled') row.cancelled_at = least(row.cancelled_at, event.at);
      return;
    case 'RunReleased':
      row.released_at = least(row.released_at, event.at);
      return;
    case 'RunHeld': {
      const over = row.hold_ended_at !== null && event.since <= row.hold_ended_at;
      if (over || (row.hold_since !== null && row.hold_since <= event.since)) return;
      const isNews = row.hold_reason === null;
      row.hold_reason = event.reason;
      row.hold_since = event.since;
      row.hold_detail = event.detail;
      if (!isNews) return;
      row.hold_sequence++;
      onHeld(holdOf(row));
      return;
    }
    default:
      return name satisfies never;
  }
}

function applyScheduleEvent(row: RunRow, { name, event }: ScheduleEvent, onEnded: (hold: Hold) => void): void {
  if (name === 'ScheduleCancelled') row.cancelled_at = least(row.cancelled_at, event.at);
  row.hold_ended_at = greatest(row.hold_ended_at, event.at);
  if (row.hold_since === null || row.hold_since > event.at) return;
  row.hold_sequence++;
  onEnded(holdOf(row));
  row.hold_reason = null;
  row.hold_since = null;
  row.hold_detail = null;
}

function holdOf(row: RunRow): Hold {
  return {
    runId: row.run_id,
    scheduleId: row.schedule_id,
    ...publicIds(row.run_id, row.schedule_id, row.tenant_id),
    externalId: row.external_id,
    sequence: row.hold_sequence,
    reason: row.hold_reason!,
    since: row.hold_since!,
    detail: row.hold_detail,
  };
}

/** Whether the run is completed now, or completed differently. */
function settle(
  codec: Codec,
  row: RunRow,
  counts: RunCount[],
  moved: boolean,
  nowMs: number,
  evidenceWindowMs: number,
): Outgoing[] {
  // A run of one message is told by that message.
  if (moved && row.total !== 1) row.untold = true;
  if (row.total === null) return [];
  const completed = endedOf(counts) >= row.total;
  if (!completed) {
    // A newer revision takes back what an older one had refused.
    row.outcome = null;
    row.completed_at = null;
    return [];
  }
  const outcome = outcomeOf(counts);
  if (row.outcome === outcome) return [];
  const correction = row.outcome !== null;
  row.outcome = outcome;
  row.completed_at ??= nowMs;
  row.evidence_ends_at ??= row.completed_at + evidenceWindowMs;
  row.untold = false;
  row.sequence++;
  return [runCompleted(codec, { ...toldRun(row, counts), outcome, completedAt: row.completed_at, correction }, nowMs)];
}

export function toldRun(row: RunRow, counts: RunCount[]): ToldRun {
  return {
    ...frameOf(row)!,
    total: row.total!,
    sequence: row.sequence,
    status: runStatusOf({
      completed: row.completed_at !== null,
      cancelled: row.cancelled_at !== null,
      started: row.released_at !== null || counts.some(({ count }) => count > 0),
    }),
    counts,
  };
}

function merged(before: RunCount[], moved: RunCount[]): RunCount[] {
  const left = before.filter(({ status, reason }) => !moved.some((one) => one.status === status && one.reason === reason));
  return [...left, ...moved];
}

function least(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}

function greatest(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.max(a, b);
}
