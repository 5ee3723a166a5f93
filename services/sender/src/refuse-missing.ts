import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { Missing } from './audience/message-source';
import type { DueItem } from './postgres/gate-port';

const REFUSE_MISSING = sqlFile(__dirname, 'refuse-missing.sql');

/** A message whose content or recipient does not exist can never be sent, and says so. One that has a claim keeps it. */
export async function refuseMissing(database: Database, item: DueItem, reason: Missing['missing']): Promise<void> {
  await database.rows(REFUSE_MISSING, [item.scheduleId, [item.occurrenceId], [item.position], new Date(item.dueAt), reason]);
}
