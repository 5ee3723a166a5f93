import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Inside one number: a service's functions may use what an earlier one made under the same number. */
export const SERVICE_ORDER = ['sender', 'api', 'scheduler', 'receipts'] as const;

export const SERVICES_FOLDER = join(__dirname, '../../../services');

export interface MigrationFile {
  /** `sender/001-tables.sql` */
  file: string;
  number: number;
  sql: string;
  sha256: string;
  /** What TypeORM sorts and remembers it by; it insists on thirteen digits at the end. */
  typeormName: string;
}

/** All `<service>/migrations/NNN-what.sql`, by number, then by service. Throws, naming the file, on a name or a service that does not fit. */
export function planMigrations(servicesFolder: string = SERVICES_FOLDER): MigrationFile[] {
  const files: (MigrationFile & { rank: number })[] = [];
  for (const service of readdirSync(servicesFolder)) {
    const folder = join(servicesFolder, service, 'migrations');
    if (!existsSync(folder)) continue;
    const rank = SERVICE_ORDER.indexOf(service as (typeof SERVICE_ORDER)[number]);
    const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
    if (rank < 0 && names.length > 0)
      throw new Error(
        `${service}/migrations: add "${service}" to SERVICE_ORDER in plan-migrations.ts, so that its place is known`,
      );
    const seen = new Map<string, string>();
    for (const name of names) {
      const match = /^(\d{3})-[a-z0-9-]+\.sql$/.exec(name);
      if (!match) throw new Error(`${service}/migrations/${name}: a migration is called NNN-what.sql`);
      const digits = match[1]!;
      if (seen.has(digits)) throw new Error(`${service}/migrations: ${seen.get(digits)} and ${name} have the same number`);
      seen.set(digits, name);
      const sql = readFileSync(join(folder, name), 'utf8');
      files.push({
        file: `${service}/${name}`,
        number: Number(digits),
        rank,
        sql,
        sha256: createHash('sha256').update(sql).digest('hex'),
        typeormName: `${service}-${name.replace(/\.sql$/, '')}-${1_000_000_000_000 + Number(digits) * 100 + rank}`,
      });
    }
  }
  return files.sort((a, b) => a.number - b.number || a.rank - b.rank);
}
