import { counter } from '#runtime/metrics';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { METRICS } from './metric-names';

const DELETE = sqlFile(`${__dirname}/intake`, 'delete-unclaimed.sql');

/** Meta sends a webhook for seven days at most; what has found no message by then finds none. */
const UNCLAIMED_MS = 8 * 86_400_000;
const ROWS_AT_ONCE = 1_000;

const unclaimed = counter(
  METRICS.evidenceUnclaimed,
  'Provider ids whose parked evidence was dropped because no message of ours has them',
);

export class TidyParked {
  constructor(private readonly database: Queryable) {}

  /** Drops parked evidence that nobody will claim. Answers how much; more may be left then. */
  async tidyOnce(): Promise<number> {
    const { length } = await this.database.rows(DELETE, [UNCLAIMED_MS, ROWS_AT_ONCE]);
    if (length > 0) unclaimed.add(length);
    return length;
  }
}
