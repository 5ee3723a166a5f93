import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { AttemptResult } from './postgres/gate-port';

const READ_LOST_CLAIMS = sqlFile(__dirname, 'read-lost-claims.sql');

export interface RecoverClaimsOptions {
  database: Database;
  clock: Clock;
  log: Log;
  instance: string;
  /** True for what this process has in hand: with the gate, claimed, with the provider, or not recorded yet. */
  isOpen(occurrenceId: Buffer): boolean;
  record(result: AttemptResult): void;
}

/**
 * When the connection breaks while the gate commits, the claim is there and nobody knows of it: it would become uncertain at its
 * deadline although nothing was written. This process can tell, since it is the one that begun it and has it nowhere.
 */
export class RecoverClaims {
  private lost: Buffer[] = [];

  constructor(private readonly options: RecoverClaimsOptions) {}

  add(occurrenceId: Buffer): void {
    this.lost.push(occurrenceId);
  }

  /** Answers how many claims were recorded as not sent. */
  async recoverOnce(): Promise<number> {
    const { database, clock, log, instance, isOpen, record } = this.options;
    // Another copy of the message may be in hand, or with the gate right now: then its claim is not lost. Asked before the reading
    // and after it, since either may change meanwhile.
    this.lost = this.lost.filter((occurrenceId) => !isOpen(occurrenceId));
    const ids = this.lost;
    if (ids.length === 0) return 0;
    const rows = await database.rows<{ occurrence_id: Buffer; attempt: number }>(READ_LOST_CLAIMS, [ids, instance]);
    this.lost = this.lost.slice(ids.length);
    const now = clock.nowMs();
    const found = rows.filter(({ occurrence_id }) => !isOpen(occurrence_id));
    for (const { occurrence_id: occurrenceId, attempt } of found) {
      record({
        occurrenceId,
        attempt,
        calledAt: null,
        endedAt: now,
        outcome: 'not_sent',
        text: 'answer_lost',
        nextAttemptAt: now,
      });
    }
    if (found.length > 0) log.warn('claims whose answers were lost are recorded as not sent', { count: found.length });
    return found.length;
  }
}
