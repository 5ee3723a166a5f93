import type { Log } from '#runtime/log';
import { counter } from '#runtime/metrics';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { METRICS } from './metric-names';
import type { SettleOutcome, SettleUnanswered } from './settle-unanswered';

const EXPIRE = sqlFile(__dirname, 'postgres/expire-runs.sql');
const LOOK_AGAIN = sqlFile(__dirname, 'postgres/look-again.sql');
const GIVE_UP_HELD_NUMBERS = sqlFile(__dirname, 'postgres/give-up-held-numbers.sql');
const DELETE_OLD_RUNS = sqlFile(__dirname, 'postgres/delete-old-runs.sql');
const DROP_PARTITIONS = sqlFile(__dirname, 'postgres/drop-past-partitions.sql');
const ENSURE_PARTITIONS = sqlFile(__dirname, 'postgres/ensure-due-partitions.sql');
const MEASURE = sqlFile(__dirname, 'postgres/measure-backlog.sql');
const DAY_MS = 86_400_000;

const ended = counter(METRICS.ended, 'Runs that ended before everybody was handed over');

export interface SweepSettings {
  checkAfterMs: number;
  holdGiveUpMs: number;
  /** Between two looks at a run that was set aside. */
  lookAgainMs: number;
  runRetentionMs: number;
  /** Rows of one kind in one step. */
  page: number;
}

export interface SweepOutcome extends SettleOutcome {
  expired: number;
  freed: number;
  cancelled: number;
  givenUp: number;
  /** Some page was full: there may be more. */
  more: boolean;
}

export interface Backlog {
  runs: number;
  waiting: number;
  messages: number;
}

/** What time alone changes: validity that passes, holds that end or last too long, messages that nobody answered. */
export class Sweep {
  constructor(
    private readonly database: Database,
    private readonly settleUnanswered: SettleUnanswered,
    private readonly settings: SweepSettings,
    private readonly log: Log,
  ) {}

  async sweepOnce(): Promise<SweepOutcome> {
    const { page, checkAfterMs, holdGiveUpMs, lookAgainMs } = this.settings;
    const expired = await this.count(EXPIRE, [page, checkAfterMs]);
    const [looked] = await this.database.rows<{ looked_at: number; freed: number; cancelled: number; given_up: number }>(
      LOOK_AGAIN,
      [page, lookAgainMs, holdGiveUpMs, checkAfterMs],
    );
    const held = await this.count(GIVE_UP_HELD_NUMBERS, [page, holdGiveUpMs, checkAfterMs]);
    const settled = await this.settleUnanswered.settleOnce(page);
    ended.add(expired, { reason: 'expired' });
    ended.add(looked!.cancelled, { reason: 'cancelled' });
    ended.add(looked!.given_up + held, { reason: 'hold_expired' });
    if (looked!.given_up + held > 0)
      this.log.warn('runs were held for too long and are given up', { reason: 'hold_expired', count: looked!.given_up + held });
    const settledRuns = settled.ended + settled.postponed + settled.releasedAgain;
    return {
      ...settled,
      expired,
      freed: looked!.freed,
      cancelled: looked!.cancelled,
      givenUp: looked!.given_up + held,
      more: Math.max(expired, looked!.looked_at, held, settledRuns) >= page,
    };
  }

  /** Partitions that will be needed soon are there, those of the past and old runs go. */
  async tidyOnce(nowMs: number): Promise<{ dropped: number; deletedRuns: number }> {
    const days = [0, 1, 2].map((ahead) => new Date(nowMs + ahead * DAY_MS).toISOString().slice(0, 10));
    await this.database.rows(ENSURE_PARTITIONS, [days]);
    const [row] = await this.database.rows<{ dropped: number }>(DROP_PARTITIONS);
    const deleted = await this.database.rows(DELETE_OLD_RUNS, [this.settings.runRetentionMs, 5 * this.settings.page]);
    return { dropped: row!.dropped, deletedRuns: deleted.length };
  }

  async measureOnce(): Promise<Backlog> {
    const [row] = await this.database.rows<{ runs: number; waiting: number; messages: number }>(MEASURE);
    return row!;
  }

  private async count(statement: ReturnType<typeof sqlFile>, values: unknown[]): Promise<number> {
    const [row] = await this.database.rows<{ ended: number }>(statement, values);
    return row!.ended;
  }
}
