import type { Clock } from '#runtime/clock';
import type { Database, Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { MessageStatus } from '#contracts/words';
import { endOfRun, insertMessages, lockMessages, updateMessages, type Change } from '../projection/message-rows';
import { countAnswered, lockRuns, readRanges, updateRuns, writeCounts } from '../projection/run-rows';
import { CountDelta } from '../projection/run-delta';
import {
  factsOfRecord,
  type AttemptRecord,
  type ClaimRecord,
  type MessageRecord,
  type WaitingRecord,
} from '../status/facts-of-record';
import type { EvidenceFact } from '../status/message-facts';
import { mergeFacts } from '../status/message-facts';
import { statusOf } from '../status/message-status';
import { shareOutRanges, weightOf } from '../status/refused-ranges';
import { endedOf, outcomeOf, type RunCount } from '../status/run-outcome';

const LIST_RUNS = sqlFile(__dirname, 'list-runs.sql');
const READ_PAGE = sqlFile(__dirname, 'read-page.sql');
const DELETE_WITHOUT_RECORD = sqlFile(__dirname, 'delete-without-record.sql');
const CLEAR_RUN = sqlFile(__dirname, 'clear-run.sql');
const COUNT_RUN = sqlFile(__dirname, 'count-run.sql');
const MARK_ANSWERED = sqlFile(__dirname, 'mark-run-answered.sql');

const MESSAGES_AT_ONCE = 1_000;
const RUNS_AT_ONCE = 500;

interface RecordedRun {
  run_id: Buffer;
  planned: boolean;
}

type Json = Record<string, unknown>;

interface RecordRow {
  occurrence_id: Buffer;
  claim: Json | null;
  waiting: Json | null;
  attempts: Json[];
  evidence: Json[];
}

export interface Rebuilt {
  runs: number;
  messages: number;
}

/**
 * Makes the rows of messages and the counters of runs anew from what is kept for good: claims, attempts, waiting rows, evidence,
 * and what runs and ranges were told. Tells nobody. May run beside the projection: messages are rewritten under their row locks,
 * and a run is counted under its own, after which the projection counts on.
 */
export class RebuildReadModel {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async rebuild(onRun: (done: Rebuilt) => void = () => undefined): Promise<Rebuilt> {
    const done: Rebuilt = { runs: 0, messages: 0 };
    for (let after: Buffer = Buffer.alloc(0); ;) {
      const runs = await this.database.rows<RecordedRun>(LIST_RUNS, [after, RUNS_AT_ONCE]);
      if (runs.length === 0) return done;
      for (const run of runs) {
        done.messages += await this.rebuildRun(run);
        done.runs++;
        onRun(done);
      }
      after = runs.at(-1)!.run_id;
    }
  }

  private async rebuildRun(run: RecordedRun): Promise<number> {
    const end = endOfRun(run.run_id);
    let messages = 0;
    for (let after = run.run_id; ;) {
      const page = await this.database.rows<RecordRow>(READ_PAGE, [after, end, MESSAGES_AT_ONCE]);
      const until = page.length < MESSAGES_AT_ONCE ? end : page.at(-1)!.occurrence_id;
      messages += await this.database.transaction((transaction) => this.writePage(transaction, run, after, until));
      if (page.length < MESSAGES_AT_ONCE) break;
      after = until;
    }
    await this.database.transaction((transaction) => this.countRun(transaction, run));
    return messages;
  }

  /** Reads the page again under the locks of its messages: what moved in between must not be put back. */
  private async writePage(transaction: Queryable, run: RecordedRun, after: Buffer, until: Buffer): Promise<number> {
    const ids = (await transaction.rows<RecordRow>(READ_PAGE, [after, endOfRun(run.run_id), MESSAGES_AT_ONCE])).map(
      ({ occurrence_id }) => occurrence_id,
    );
    const known = await lockMessages(transaction, ids);
    const page = await transaction.rows<RecordRow>(READ_PAGE, [after, endOfRun(run.run_id), MESSAGES_AT_ONCE]);
    const changes = page.flatMap((row) => changeOfRecord(run, row, known.get(row.occurrence_id.toString('hex'))) ?? []);
    await transaction.rows(DELETE_WITHOUT_RECORD, [after, until, Buffer.concat(changes.map(({ occurrenceId }) => occurrenceId))]);
    const nowMs = this.clock.nowMs();
    await insertMessages(
      transaction,
      changes.filter(({ exists }) => !exists),
      nowMs,
    );
    await updateMessages(
      transaction,
      changes.filter(({ exists }) => exists),
      nowMs,
    );
    return changes.length;
  }

  private async countRun(transaction: Queryable, { run_id: runId }: RecordedRun): Promise<void> {
    const row = (await lockRuns(transaction, [runId])).get(runId.toString('hex'));
    if (!row) return;
    const end = endOfRun(runId);
    await transaction.rows(CLEAR_RUN, [runId]);
    await transaction.rows(MARK_ANSWERED, [runId, end]);
    const counts = new CountDelta();
    for (const { status, reason, count } of await transaction.rows<{
      status: MessageStatus;
      reason: string | null;
      count: number;
    }>(COUNT_RUN, [runId, end])) {
      counts.add(status, reason, count);
    }
    const shares = shareOutRanges((await readRanges(transaction, [runId])).get(runId.toString('hex'))!, row.latest_revision);
    for (const share of shares) {
      const answered = await countAnswered(
        transaction,
        share.segments.map((segment) => ({ runId, ...segment })),
      );
      counts.add(
        share.range.status as MessageStatus,
        share.range.reason,
        weightOf(
          share,
          answered.reduce((sum, one) => sum + one, 0),
        ),
      );
    }
    const counted: RunCount[] = counts.applyTo([]);
    await writeCounts(
      transaction,
      counted.map((count) => ({ ...count, runId })),
    );
    const completed = row.total !== null && endedOf(counted) >= row.total;
    row.outcome = completed ? outcomeOf(counted) : null;
    row.completed_at = completed ? (row.completed_at ?? this.clock.nowMs()) : null;
    await updateRuns(transaction, [row]);
  }
}

function changeOfRecord(
  run: RecordedRun,
  row: RecordRow,
  known: { facts: Change['after']['facts']; toldStatus: string | null } | undefined,
): Change | null {
  const record: MessageRecord = {
    claim: row.claim && claimOf(row.claim),
    waiting: row.waiting && waitingOf(row.waiting),
    attempts: row.attempts.map(attemptOf),
    evidence: row.evidence.map(evidenceOf).filter(({ kind }) => kind !== 'unknown'),
  };
  let facts = factsOfRecord(record);
  // At a provider right now: what it waited for before is known to the row alone.
  if (record.claim?.state === 'sending' && known) facts = mergeFacts(known.facts, facts);
  if (facts.own === null && record.evidence.length === 0) return null;
  const after = { facts, status: statusOf(facts) };
  const told = run.planned && facts.own !== null ? (known?.toldStatus ?? after.status.status) : null;
  return {
    id: row.occurrence_id.toString('hex'),
    occurrenceId: row.occurrence_id,
    owner: null,
    exists: known !== undefined,
    before: null,
    after,
    toldStatus: told,
  };
}

const instant = (value: unknown) => (typeof value === 'string' ? eventMs(value) : null);
const text = (value: unknown) => (typeof value === 'string' ? value : null);

function claimOf(claim: Json): ClaimRecord {
  return {
    position: Number(claim.position),
    revision: Number(claim.revision),
    dueAt: instant(claim.due_at) ?? 0,
    state: claim.state as ClaimRecord['state'],
    step: Number(claim.step),
    attempt: Number(claim.attempt),
    reason: text(claim.reason),
    errorCode: text(claim.error_code),
    nextAttemptAt: instant(claim.next_attempt_at),
    providerMessageId: text(claim.provider_message_id),
    updatedAt: instant(claim.updated_at) ?? 0,
  };
}

function waitingOf(waiting: Json): WaitingRecord {
  return {
    position: Number(waiting.position),
    revision: Number(waiting.revision),
    dueAt: instant(waiting.due_at) ?? 0,
    validUntil: instant(waiting.valid_until),
    reason: String(waiting.reason),
    since: instant(waiting.since) ?? 0,
    wakeAt: instant(waiting.wake_at) ?? 0,
    givesUpAt: instant(waiting.gives_up_at) ?? 0,
  };
}

function attemptOf(attempt: Json): AttemptRecord {
  return {
    attempt: Number(attempt.attempt),
    begunAt: instant(attempt.begun_at) ?? 0,
    calledAt: instant(attempt.called_at),
    endedAt: instant(attempt.ended_at),
    outcome: text(attempt.outcome),
    errorCode: text(attempt.error_code),
    providerCode: text(attempt.provider_code),
    text: text(attempt.text),
    providerMessageId: text(attempt.provider_message_id),
    waits: Array.isArray(attempt.waits) ? (attempt.waits as AttemptRecord['waits']) : null,
  };
}

function evidenceOf(evidence: Json): EvidenceFact {
  const code = text(evidence.code);
  return {
    attempt: Number(evidence.attempt),
    kind: evidence.kind as EvidenceFact['kind'],
    at: instant(evidence.provider_at) ?? 0,
    recordedAt: instant(evidence.recorded_at) ?? 0,
    providerMessageId: text(evidence.provider_message_id),
    error: code === null ? null : { code, providerCode: text(evidence.provider_code) || null, text: text(evidence.text) },
  };
}

/**
 * Milliseconds as the sender's events have them: its database keeps microseconds, and its `sender.ms` rounds their floating-point
 * product half to even. A date parsed by itself is cut off: every second rebuilt instant, and with it the sequence, would be one less.
 */
function eventMs(value: string): number {
  const micros = Date.parse(value) * 1_000 + Number(/\.\d{3}(\d{1,3})/.exec(value)?.[1]?.padEnd(3, '0') ?? 0);
  const ms = (micros / 1_000_000) * 1_000;
  const rounded = Math.round(ms);
  return rounded - ms === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
