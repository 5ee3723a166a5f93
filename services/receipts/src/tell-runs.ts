import type { Codec } from '#contracts/codec';
import type { Clock } from '#runtime/clock';
import type { Database, Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { messageRowsToChanges, type MessageRow } from './projection/message-rows';
import { messageStatusChanged, runProgressed, type Outgoing } from './projection/outgoing';
import { writeOutbox, type Partitions } from './projection/outbox-rows';
import { toldRun } from './projection/project-runs';
import { RecipientDirectory } from './projection/recipient-directory';
import { frameOf, lockRuns, readCounts } from './projection/run-rows';

const TAKE_UNTOLD = sqlFile(`${__dirname}/run-news`, 'take-untold-runs.sql');
const MARK_TOLD = sqlFile(`${__dirname}/run-news`, 'mark-runs-told.sql');
const TAKE_ENDED = sqlFile(`${__dirname}/run-news`, 'take-runs-without-evidence.sql');
const READ_OPEN = sqlFile(`${__dirname}/run-news`, 'read-open-messages.sql');
const MOVE_SWEEP = sqlFile(`${__dirname}/run-news`, 'move-evidence-sweep.sql');

const RUNS_AT_ONCE = 200;
const ENDED_RUNS_AT_ONCE = 50;
/** Of one run. */
const MESSAGES_AT_ONCE = 200;

export interface ToldRunsOptions {
  database: Database;
  codec: Codec;
  clock: Clock;
  partitions: Partitions;
  progressEveryMs: number;
}

/** `more`: the step did all that it does at once, and something may be left. */
export interface Step {
  told: number;
  more: boolean;
}

/** What is told of runs by the clock and not by a fact. Any number of instances may do it at once. */
export class ToldRuns {
  private readonly recipients = new RecipientDirectory(20_000);

  constructor(private readonly options: ToldRunsOptions) {}

  /** RunProgressed for runs whose counts moved since they were told last, which is at least `progressEveryMs` ago. */
  async tellProgressOnce(): Promise<Step> {
    const { database, codec, clock, partitions, progressEveryMs } = this.options;
    return database.transaction(async (transaction) => {
      const nowMs = clock.nowMs();
      const rows = await transaction.rows<{ run_id: Buffer }>(TAKE_UNTOLD, [RUNS_AT_ONCE, progressEveryMs, nowMs]);
      if (rows.length === 0) return { told: 0, more: false };
      const taken = rows.map(({ run_id }) => run_id);
      await transaction.rows(MARK_TOLD, [taken, nowMs]);
      const runs = await lockRuns(transaction, taken);
      const counts = await readCounts(transaction, taken);
      const outgoing = [...runs].map(([name, row]) => runProgressed(codec, toldRun(row, counts.get(name)!), nowMs));
      await writeOutbox(transaction, outgoing, partitions);
      return { told: taken.length, more: taken.length === RUNS_AT_ONCE };
    });
  }

  /**
   * Messages that were accepted and of which nothing more was heard until the evidence window ended: told once more, as final.
   * By run and not by message, since an index over instants that change would cost every update.
   */
  async tellFinalOnce(): Promise<Step> {
    const { database, clock, partitions } = this.options;
    return database.transaction(async (transaction) => {
      const taken = await transaction.rows<{ run_id: Buffer; evidence_told_until: Buffer | null }>(TAKE_ENDED, [
        ENDED_RUNS_AT_ONCE,
        clock.nowMs(),
      ]);
      if (taken.length === 0) return { told: 0, more: false };
      const runIds = taken.map(({ run_id }) => run_id);
      const messages = await transaction.rows<MessageRow & { run_id: Buffer }>(READ_OPEN, [
        runIds,
        taken.map(({ run_id, evidence_told_until: until }) => until ?? run_id),
        MESSAGES_AT_ONCE,
      ]);
      await writeOutbox(transaction, await this.finals(transaction, runIds, messages), partitions);
      const until = runIds.map((runId) => {
        const own = messages.filter(({ run_id }) => run_id.equals(runId));
        return own.length === MESSAGES_AT_ONCE ? own.at(-1)!.occurrence_id : null;
      });
      await transaction.rows(MOVE_SWEEP, [runIds, until]);
      return { told: messages.length, more: taken.length === ENDED_RUNS_AT_ONCE || until.some((place) => place !== null) };
    });
  }

  private async finals(transaction: Queryable, runIds: Buffer[], messages: MessageRow[]): Promise<Outgoing[]> {
    const { codec, clock } = this.options;
    if (messages.length === 0) return [];
    const runs = await lockRuns(transaction, runIds);
    const changes = messageRowsToChanges(messages);
    const frames = changes.map(({ id }) => frameOf(runs.get(id.slice(0, 24))!)!);
    const recipients = await this.recipients.read(
      transaction,
      changes.map(({ after }, place) => ({
        scheduleId: frames[place]!.scheduleId,
        revision: after.facts.own!.revision,
        position: after.facts.own!.position,
      })),
    );
    const nowMs = clock.nowMs();
    return changes.map((change, place) => messageStatusChanged(codec, change, frames[place]!, recipients[place]!, nowMs, true));
  }
}
