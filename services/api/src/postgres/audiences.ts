import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { AudienceFacts } from '../schedule/plan-schedule';

const FIND = sqlFile(__dirname, 'find-audience.sql');

interface Row {
  id: string;
  status: string;
  accepted: number;
  rejected: number;
  duplicates: number;
  chunk_count: number;
  columns: string[];
  missing: Record<string, { count: number; firstRow: number }> | null;
  set_hash: Buffer | null;
}

export interface FoundAudience {
  status: string;
  facts: AudienceFacts;
  setHash: Buffer;
}

export async function findAudience(database: Database, tenantId: string, id: string): Promise<FoundAudience | null> {
  const [row] = await database.rows<Row>(FIND, [tenantId, id]);
  if (!row) return null;
  return {
    status: row.status,
    setHash: row.set_hash ?? Buffer.alloc(0),
    facts: {
      id: row.id,
      inline: false,
      accepted: row.accepted,
      rejected: row.rejected,
      duplicates: row.duplicates,
      chunkCount: row.chunk_count,
      columns: row.columns,
      missing: row.missing ?? {},
    },
  };
}
