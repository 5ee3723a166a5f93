import { sqlFile } from '#runtime/postgres/sql-file';
import { decide } from './decide';
import type {
  AttemptResult,
  DecideOptions,
  DueItem,
  EvidenceItem,
  GatePort,
  RecordedResult,
  ResultOptions,
  Swept,
  Verdict,
  WaitingItem,
} from './gate-port';
import { MAX_BATCH } from './gate-port';
import { Holds } from './holds';
import { recordEvidence } from './record-evidence';
import { recordResults } from './record-results';
import { nextWakeInMs, releaseWaiting, takeEndedWaiting, takeWaiting } from './waiting-rows';

const SWEEP_DEADLINES = sqlFile(__dirname, 'sweep-deadlines.sql');
const PARK_RECORD = sqlFile(__dirname, 'park-record.sql');
const ENSURE_CLAIM_PARTITIONS = sqlFile(__dirname, 'ensure-claim-partitions.sql');

const LEASE_MS = 15_000;

/** The gate's record in PostgreSQL; the database pool tries again by itself after deadlocks and full lock tables. */
export class PostgresGate extends Holds implements GatePort {
  async decide(items: readonly DueItem[], options: DecideOptions): Promise<Verdict[]> {
    return (await decide(this.database, items, options)) as Verdict[];
  }

  recordResults(items: readonly AttemptResult[], options: ResultOptions): Promise<RecordedResult[]> {
    return recordResults(this.database, items, options);
  }

  recordEvidence(items: readonly EvidenceItem[]): Promise<number> {
    return recordEvidence(this.database, items);
  }

  async sweepDeadlines(options: ResultOptions & { graceMs: number; limit?: number }): Promise<Swept> {
    const { graceMs, evidenceWindowMs, resendAfterMs, limit = MAX_BATCH } = options;
    const [row] = await this.database.rows<{ overdue: number; unconfirmed: number }>(SWEEP_DEADLINES, [
      graceMs,
      evidenceWindowMs,
      resendAfterMs,
      limit,
    ]);
    return { overdue: row!.overdue, unconfirmed: row!.unconfirmed };
  }

  async sweepWaiting({ limit = MAX_BATCH }: { limit?: number } = {}): Promise<number> {
    const ended = await takeEndedWaiting(this.database, limit, LEASE_MS);
    const verdicts = await decide(this.database, ended, { instance: 'sweeper', deadlineMs: 0, mayClaim: false });
    return verdicts.filter((verdict) => verdict !== null && verdict.kind !== 'held').length;
  }

  takeWaiting(
    numbers: ReadonlyArray<{ numberId: string; free: number }>,
    { leaseMs = LEASE_MS }: { leaseMs?: number } = {},
  ): Promise<WaitingItem[]> {
    return takeWaiting(this.database, numbers, leaseMs);
  }

  releaseWaiting(occurrenceIds: readonly Buffer[]): Promise<void> {
    return releaseWaiting(this.database, occurrenceIds);
  }

  nextWakeInMs(numberIds: readonly string[]): Promise<number | null> {
    return nextWakeInMs(this.database, numberIds);
  }

  async parkRecord({ key, value, reason }: { key: Buffer | null; value: Buffer; reason: string }): Promise<void> {
    await this.database.rows(PARK_RECORD, [key ?? Buffer.alloc(0), value, reason]);
  }

  async ensureClaimPartitions(daysAhead = 8): Promise<void> {
    await this.database.rows(ENSURE_CLAIM_PARTITIONS, [daysAhead]);
  }
}
