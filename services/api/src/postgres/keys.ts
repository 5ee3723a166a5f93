import { formatId, uuidBytes } from '#contracts/ids';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { Caller } from '../call';
import { hashApiKey, type Scope } from '../keys/api-key';
import type { Mode } from '../schedule/definition';

const FIND_CALLER = sqlFile(__dirname, 'find-caller.sql');

export async function findCaller(database: Database, key: string): Promise<Caller | null> {
  const [row] = await database.rows<{ key_id: string; scopes: Scope[]; tenant_id: string; mode: Mode }>(FIND_CALLER, [
    hashApiKey(key),
  ]);
  if (!row) return null;
  return {
    tenantId: row.tenant_id,
    mode: row.mode,
    scopes: new Set(row.scopes),
    actor: `key:${formatId('key', uuidBytes(row.key_id))}`,
  };
}
