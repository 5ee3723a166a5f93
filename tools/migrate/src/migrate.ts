import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { PunctualError } from '#runtime/errors';
import { planMigrations, type MigrationFile } from './plan-migrations';

const PREPARE = readFileSync(join(__dirname, 'prepare-database.sql'), 'utf8');
/** Any number of our own; all runs on one database take this lock. */
const LOCK_KEY = 7_000_000_001;

const PASSWORD_VARIABLES = {
  punctual_api: 'DATABASE_PASSWORD_API',
  punctual_scheduler: 'DATABASE_PASSWORD_SCHEDULER',
  punctual_sender: 'DATABASE_PASSWORD_SENDER',
  punctual_receipts: 'DATABASE_PASSWORD_RECEIPTS',
} as const;

// TypeORM prints failures of migrations to the console whatever `logging` says; ours carry file and line.
const nothing = () => undefined;
const SILENT = {
  logQuery: nothing,
  logQueryError: nothing,
  logQuerySlow: nothing,
  logSchemaBuild: nothing,
  logMigration: nothing,
  log: nothing,
};

export interface MigrateOptions {
  log?: (line: string) => void;
  /** Where `<service>/migrations` folders are; the repository's services if absent. */
  servicesFolder?: string;
  /** Passwords of the login roles are taken from here, if given. */
  env?: NodeJS.ProcessEnv;
}

export interface MigrateResult {
  applied: string[];
  version: number;
}

export class MigrationError extends PunctualError {
  constructor(message: string, cause?: unknown) {
    super('migration_failed', message, { cause });
  }
}

/**
 * Brings a database to the newest schema: roles, schemas, then every file that was not applied yet, each in a transaction of
 * its own, as punctual_migrator. Runs at the same time wait for each other; a second run does nothing.
 */
export async function migrate(adminUrl: string, options: MigrateOptions = {}): Promise<MigrateResult> {
  const log = options.log ?? (() => undefined);
  const files = planMigrations(options.servicesFolder);
  const admin = new Client({ connectionString: adminUrl, application_name: 'punctual-migrate', keepAlive: true });
  admin.on('error', () => undefined);
  await admin.connect();
  try {
    await admin.query('SELECT pg_advisory_lock($1)', [LOCK_KEY]);
    await prepare(admin, options.env ?? process.env);
    await refuseChangedFiles(admin, files);
    const applied = await applyPending(adminUrl, files, log);
    log(
      applied.length === 0 ? `The schema is up to date (version ${files.length}).` : `The schema is at version ${files.length}.`,
    );
    return { applied, version: files.length };
  } finally {
    await admin.end();
  }
}

async function prepare(admin: Client, env: NodeJS.ProcessEnv): Promise<void> {
  // Roles are shared by all databases of a server: two runs on two databases can change the same catalogue row at once (XX000).
  for (let attempt = 1; ; attempt++) {
    try {
      await admin.query('BEGIN');
      await admin.query(PREPARE);
      for (const [role, variable] of Object.entries(PASSWORD_VARIABLES)) {
        const password = env[variable];
        if (password) await admin.query(`ALTER ROLE ${role} PASSWORD ${admin.escapeLiteral(password)}`);
      }
      await admin.query('COMMIT');
      return;
    } catch (error) {
      await admin.query('ROLLBACK');
      const { code } = error as { code?: string };
      if (attempt >= 20 || !['XX000', '40P01', '23505', '42710'].includes(code ?? '')) {
        throw new MigrationError(
          'The roles and schemas could not be prepared. The administrator role must be able to create roles and schemas.',
          error,
        );
      }
    }
  }
}

async function refuseChangedFiles(admin: Client, files: MigrationFile[]): Promise<void> {
  const { rows } = await admin.query<{ file: string; sha256: string }>(
    'SELECT file, sha256 FROM punctual.applied_file ORDER BY file',
  );
  const now = new Map(files.map((file) => [file.file, file.sha256]));
  const changed = rows.filter((row) => now.has(row.file) && now.get(row.file) !== row.sha256).map((row) => row.file);
  if (changed.length > 0) {
    throw new MigrationError(
      `Already applied, but changed since: ${changed.join(', ')}. Nothing was done. Put the file back and write the change as a new one, or start with an empty database.`,
    );
  }
}

async function applyPending(adminUrl: string, files: MigrationFile[], log: (line: string) => void): Promise<string[]> {
  const applied: string[] = [];
  const dataSource = new DataSource({
    type: 'postgres',
    url: adminUrl,
    schema: 'punctual',
    applicationName: 'punctual-migrate',
    migrationsTableName: 'migration',
    migrations: files.map((file) => migrationFor(file, (name) => applied.push(name), log)),
    logging: false,
    logger: SILENT,
    poolErrorHandler: () => undefined,
    extra: { max: 2 },
  });
  await dataSource.initialize();
  try {
    await dataSource.runMigrations({ transaction: 'each' });
  } finally {
    await dataSource.destroy();
  }
  return applied;
}

function migrationFor(
  file: MigrationFile,
  onApplied: (name: string) => void,
  log: (line: string) => void,
): new () => MigrationInterface {
  return class implements MigrationInterface {
    readonly name = file.typeormName;

    async up(queryRunner: QueryRunner): Promise<void> {
      // With an empty search path a statement that forgets to name its schema fails here and not in production.
      await queryRunner.query(`SET LOCAL ROLE punctual_migrator; SET LOCAL search_path = ''`);
      try {
        await queryRunner.query(file.sql);
      } catch (error) {
        throw new MigrationError(
          `services/${file.file.replace('/', '/migrations/')}${lineOf(error, file.sql)}: ${(error as Error).message}`,
          error,
        );
      }
      await queryRunner.query('INSERT INTO punctual.applied_file (file, sha256) VALUES ($1, $2)', [file.file, file.sha256]);
      await queryRunner.query('RESET ROLE; RESET search_path');
      onApplied(file.file);
      log(`applied ${file.file}`);
    }

    async down(): Promise<void> {
      throw new MigrationError(`${file.file} can not be undone: write a new file that does what is needed.`);
    }
  };
}

function lineOf(error: unknown, sql: string): string {
  const failure = error as { position?: string; driverError?: { position?: string } };
  const position = Number(failure.position ?? failure.driverError?.position);
  return Number.isFinite(position) ? `, line ${sql.slice(0, position).split('\n').length}` : '';
}
