import { CHUNK_SIZE, RECIPIENT_HASH_BYTES, formatId, occurrenceId, uuidBytes } from '#contracts/ids';
import type { Log } from '#runtime/log';
import { counter } from '#runtime/metrics';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { METRICS } from './metric-names';
import { decideUnanswered, type UnansweredDecision } from './planning/decide-unanswered';
import type { RecipientSet } from './planning/recipient-set';
import { RecipientSets } from './postgres/recipient-sets';

const TAKE = sqlFile(__dirname, 'postgres/take-unanswered.sql');
const RELEASE_AGAIN = sqlFile(__dirname, 'postgres/release-again.sql');
const END_WATCH = sqlFile(__dirname, 'postgres/end-watch.sql');
const REFUSE = sqlFile(__dirname, 'postgres/refuse-unanswered.sql');
const READ_HASHES = sqlFile(__dirname, 'postgres/read-hashes.sql');
const CHUNKS_AT_ONCE = 20;

const releasedAgain = counter(METRICS.releasedAgain, 'Runs released again because some of their messages were never answered');
const refused = counter(METRICS.refused, 'Messages given up after they were handed over');

interface TakenRow {
  run_id: Buffer | null;
  schedule_id: string;
  revision: number;
  audience_id: string;
  due_at: Date;
  released_position: number;
  releases_again: number;
  gate_status: 'active' | 'paused' | 'cancelled' | null;
  expired: boolean;
  ended: number;
  postponed: number;
}

export interface SettleSettings {
  creditAgeMs: number;
  checkAfterMs: number;
}

export interface SettleOutcome {
  /** Runs in which everybody has an answer. */
  ended: number;
  /** Runs that wait for the sender of their number to be there. */
  postponed: number;
  releasedAgain: number;
  refused: number;
}

interface Unanswered {
  positions: number[];
  ids: Buffer[];
}

/** What was handed over and got no answer from the gate is handed over again, or refused where it can be seen. */
export class SettleUnanswered {
  private readonly recipientSets: RecipientSets;

  constructor(
    private readonly database: Database,
    private readonly settings: SettleSettings,
    private readonly log: Log,
  ) {
    this.recipientSets = new RecipientSets(database);
  }

  async settleOnce(limit = 200): Promise<SettleOutcome> {
    const { creditAgeMs, checkAfterMs } = this.settings;
    const rows = await this.database.rows<TakenRow>(TAKE, [limit, creditAgeMs, checkAfterMs]);
    const outcome: SettleOutcome = { ended: 0, postponed: 0, releasedAgain: 0, refused: 0 };
    for (const row of rows) {
      if (row.run_id === null) {
        outcome.ended += row.ended;
        outcome.postponed += row.postponed;
      } else await this.settle(row.run_id, row, outcome);
    }
    return outcome;
  }

  private async settle(runId: Buffer, row: TakenRow, outcome: SettleOutcome): Promise<void> {
    const answered = await this.recipientSets.read(runId, 'answered');
    const decision = decideUnanswered({ gateStatus: row.gate_status, expired: row.expired, releasesAgain: row.releases_again });
    let unanswered = 0;
    for await (const page of this.unanswered(runId, row, answered)) {
      unanswered += page.ids.length;
      if (decision.kind === 'release_again') break;
      const count = await this.refuse(row, decision, page);
      outcome.refused += count;
      refused.add(count, { reason: decision.reason });
    }
    if (unanswered > 0 && decision.kind === 'release_again') {
      const [done] = await this.database.rows<{ done: boolean }>(RELEASE_AGAIN, [runId, row.revision]);
      if (!done?.done) return;
      outcome.releasedAgain++;
      releasedAgain.add(1);
    } else {
      await this.database.rows(END_WATCH, [runId, row.revision]);
      outcome.ended++;
    }
    if (unanswered > 0)
      this.log.warn(
        decision.kind === 'release_again'
          ? 'messages of a run were never answered; the run is released again without those that were'
          : 'messages of a run were never answered and are refused now',
        {
          runId: formatId('run', runId),
          scheduleId: formatId('sch', uuidBytes(row.schedule_id)),
          reason: decision.kind === 'release_again' ? 'unanswered' : decision.reason,
          attempt: row.releases_again + 1,
          count: unanswered,
        },
      );
  }

  private async *unanswered(runId: Buffer, row: TakenRow, answered: RecipientSet): AsyncGenerator<Unanswered> {
    const chunks = Math.ceil(row.released_position / CHUNK_SIZE);
    for (let from = 0; from < chunks; from += CHUNKS_AT_ONCE) {
      const read = await this.database.rows<{ chunk: number; hashes: Buffer }>(READ_HASHES, [
        row.audience_id,
        from,
        CHUNKS_AT_ONCE,
      ]);
      for (const { chunk, hashes } of read) {
        const page: Unanswered = { positions: [], ids: [] };
        const count = Math.min(hashes.length / RECIPIENT_HASH_BYTES, row.released_position - chunk * CHUNK_SIZE);
        for (let index = 0; index < count; index++) {
          const at = index * RECIPIENT_HASH_BYTES;
          if (answered.has(hashes, at)) continue;
          page.positions.push(chunk * CHUNK_SIZE + index);
          page.ids.push(occurrenceId(runId, hashes.subarray(at, at + RECIPIENT_HASH_BYTES)));
        }
        if (page.ids.length > 0) yield page;
      }
    }
  }

  private async refuse(
    row: TakenRow,
    { status, reason }: Extract<UnansweredDecision, { kind: 'refuse' }>,
    { ids, positions }: Unanswered,
  ): Promise<number> {
    const values = [row.schedule_id, ids, positions, row.due_at, status, reason];
    const [done] = await this.database.rows<{ refused: number }>(REFUSE, values);
    return done!.refused;
  }
}
