import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog, type Log } from '../log';
import type { Database } from './database';
import { pause } from '../pause';
import { sqlState } from './failures';
import { statement } from './sql-file';

const SERVICES = join(__dirname, '../../../../services');
const READ_VERSION = statement('read-schema-version', 'SELECT version FROM punctual.schema_version');

/** The version that the files next to this build add up to: their number, since files are only ever added. */
export function shippedSchemaVersion(services = SERVICES): number {
  if (!existsSync(services)) return 0;
  return readdirSync(services)
    .map((service) => join(services, service, 'migrations'))
    .filter((folder) => existsSync(folder))
    .reduce((count, folder) => count + readdirSync(folder).filter((file) => /^\d{3}-.+\.sql$/.test(file)).length, 0);
}

/** Waits until `npm run migrate` has brought the database to `version` or further (an older service runs on a newer schema). */
export async function waitForSchema(
  database: Database,
  version: number = shippedSchemaVersion(),
  { log = silentLog, signal, everyMs = 500 }: { log?: Log; signal?: AbortSignal; everyMs?: number } = {},
): Promise<void> {
  let told: number | undefined;
  for (let attempt = 0; !signal?.aborted; attempt++) {
    const found = await schemaVersion(database);
    if (found >= version) return;
    // Said once, and again when it has changed: a migration that goes on passes a version with each file.
    if (attempt % 20 === 0 && found !== told) {
      log.info('waiting for the schema; run `npm run migrate`', { waitingFor: `version ${version}, found ${found}` });
      told = found;
    }
    await pause(everyMs, signal);
  }
}

/** 0 if nothing was ever migrated. */
export async function schemaVersion(database: Database): Promise<number> {
  try {
    const [row] = await database.rows<{ version: number }>(READ_VERSION);
    return row?.version ?? 0;
  } catch (error) {
    // No such schema, table or permission: the first migration has not come that far.
    if (['3F000', '42P01', '42501'].includes(sqlState(error) ?? '')) return 0;
    throw error;
  }
}
