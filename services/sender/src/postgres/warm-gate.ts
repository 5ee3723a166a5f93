import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';

const DECIDE = sqlFile(__dirname, 'decide.sql');
const RECORD_RESULTS = sqlFile(__dirname, 'record-results.sql');
const RECORD_EVIDENCE = sqlFile(__dirname, 'record-evidence.sql');

const nothing = (columns: number): unknown[][] => Array.from({ length: columns }, () => []);

/**
 * Asks about nothing, on several connections at once: each plans the gate's functions at its first call, for longer than a slot may
 * be old, and that had better not be the call which the first messages of a campaign wait for.
 */
export async function warmGate(database: Database, connections: number): Promise<void> {
  await Promise.all(
    Array.from({ length: connections }, async () => {
      await database.rows(DECIDE, [...nothing(10), 'warming', 0, true]);
      await database.rows(RECORD_RESULTS, [...nothing(17), 0, 0]);
      await database.rows(RECORD_EVIDENCE, nothing(8));
    }),
  );
}
