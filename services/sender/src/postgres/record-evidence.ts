import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { MAX_BATCH, type EvidenceItem } from './gate-port';
import { inBatches } from './in-batches';

const RECORD_EVIDENCE = sqlFile(__dirname, 'record-evidence.sql');

export async function recordEvidence(database: Database, items: readonly EvidenceItem[]): Promise<number> {
  const settled = await inBatches(items, MAX_BATCH, async (batch) => {
    const rows = await database.rows<{ settled: number }>(RECORD_EVIDENCE, [
      batch.map((item) => item.occurrenceId),
      batch.map((item) => item.attempt),
      batch.map((item) => item.kind),
      batch.map((item) => item.providerAt),
      batch.map((item) => item.providerMessageId),
      batch.map((item) => item.code),
      batch.map((item) => item.providerCode),
      batch.map((item) => item.text),
    ]);
    return rows.map((row) => row.settled);
  });
  return settled.reduce((sum, count) => sum + count, 0);
}
