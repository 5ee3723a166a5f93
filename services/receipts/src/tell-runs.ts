import type { Codec } from '#contracts/codec';
import type { Clock } from '#runtime/clock';
import type { Database, Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { messageRowsToChanges, endOfRun, type MessageRow } from './projection/message-rows';
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
const MESSAGES_AT_ONCE = 500;

export interface ToldRunsOptions {
  database: Database;
  codec: Codec;
  clock: Clock;
  partitions: Partitions;
}

/** What is told of runs by the clock and not by a fact. Any number of instances may do it at once. */
export class ToldRuns {
  private readonly recipients = new RecipientDirectory(20_000);

  constructor(private readonly options: ToldRunsOptions) {}

  /** RunProgressed for every run whose counts moved since it was told last: this step's interval is the throttle. */
  async tellProgressOnce(): Promise<number> {
    const { database, codec, clock, partitions } = this.options;
    return database.transaction(async (transaction) => {
      const taken = (await transaction.rows<{ run_id: Buffer }>(TAKE_UNTOLD, [RUNS_AT_ONCE])).map(({ run_id }) => run_id);
      if (taken.length === 0) return 0;
      await transaction.rows(MARK_TOLD, [taken]);
      const rows = await lockRuns(transaction, taken);
      const counts = await readCounts(transaction, taken);
      const outgoing = [...rows].map(([name, row]) => runProgressed(codec, toldRun(row, counts.get(name)!), clock.nowMs()));
      await writeOutbox(transaction, outgoing, partitions);
      return taken.length;
    });
  }

  /**
   * Messages that were accepted and of which nothing more was heard until the evidence window ended: told once more, as final.
   * By run and not by message, since an index over instants that change would cost every update.
   */
  async tellFinalOnce(): Promise<number> {
    const { database, clock, partitions } = this.options;
    return database.transaction(async (transaction) => {
      const [run] = await transaction.rows<{ run_id: Buffer; evidence_told_until: Buffer | null }>(TAKE_ENDED, [
        1,
        clock.nowMs(),
      ]);
      if (!run) return 0;
      const after = run.evidence_told_until ?? run.run_id;
      const messages = await transaction.rows<MessageRow>(READ_OPEN, [after, endOfRun(run.run_id), MESSAGES_AT_ONCE]);
      await writeOutbox(transaction, await this.finals(transaction, run.run_id, messages), partitions);
      const more = messages.length === MESSAGES_AT_ONCE;
      await transaction.rows(MOVE_SWEEP, [run.run_id, more ? messages.at(-1)!.occurrence_id : null]);
      return 1 + messages.length;
    });
  }

  private async finals(transaction: Queryable, runId: Buffer, messages: MessageRow[]): Promise<Outgoing[]> {
    const { codec, clock } = this.options;
    if (messages.length === 0) return [];
    const frame = frameOf((await lockRuns(transaction, [runId])).get(runId.toString('hex'))!)!;
    const changes = messageRowsToChanges(messages);
    const recipients = await this.recipients.read(
      transaction,
      changes.map(({ after }) => ({
        scheduleId: frame.scheduleId,
        revision: after.facts.own!.revision,
        position: after.facts.own!.position,
      })),
    );
    return changes.map((change, place) => messageStatusChanged(codec, change, frame, recipients[place]!, clock.nowMs(), true));
  }
}
