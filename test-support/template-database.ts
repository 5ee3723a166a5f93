import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { projectRoot } from '../tools/local-stack/src/project-root';

/** One key for all templates: migrations create roles, which belong to the whole server, so only one may run at a time. */
const TEMPLATE_LOCK = 7_000_001;

/** Creates the database `name` beside the one of `serverUrl` and returns its address. */
export async function cloneDatabase(serverUrl: string, name: string, options: { migrated: boolean }): Promise<string> {
  return withClient(serverUrl, async (client) => {
    const template = options.migrated ? await ensureTemplate(client, serverUrl) : 'template1';
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    return urlOf(serverUrl, name);
  });
}

export async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  await withClient(serverUrl, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
}

/**
 * The migrated template for the migrations as they are on disk: its name is their digest. It is built under another name and
 * renamed when it is whole, and nobody may connect to it, since a template with a connection cannot be copied.
 */
async function ensureTemplate(client: Client, serverUrl: string): Promise<string> {
  const template = `punctual_template_${digestOfMigrations()}`;
  if (await databaseExists(client, template)) return template;
  await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
  try {
    if (await databaseExists(client, template)) return template;
    const draft = `${template}_draft`;
    await client.query(`DROP DATABASE IF EXISTS ${draft} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${draft} TEMPLATE template1`);
    try {
      await loadMigrationRunner().migrate(urlOf(serverUrl, draft), { env: {} });
      await client.query(`ALTER DATABASE ${draft} ALLOW_CONNECTIONS false`);
      await client.query(`ALTER DATABASE ${draft} RENAME TO ${template}`);
    } catch (error) {
      await client.query(`DROP DATABASE IF EXISTS ${draft} WITH (FORCE)`);
      throw error;
    }
    return template;
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [TEMPLATE_LOCK]);
  }
}

async function databaseExists(client: Client, name: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  return rowCount !== 0;
}

function digestOfMigrations(): string {
  const digest = createHash('sha256');
  for (const file of migrationFiles())
    digest
      .update(`${file}\0`)
      .update(readFileSync(join(projectRoot(), file)))
      .update('\0');
  return digest.digest('hex').slice(0, 16);
}

/** The runner's own files count too: what it does before and after the migrations shapes the database. */
function migrationFiles(): string[] {
  const services = readdirSync(join(projectRoot(), 'services')).map((service) => join('services', service, 'migrations'));
  return [...services, join('tools', 'migrate', 'src')]
    .filter((folder) => existsSync(join(projectRoot(), folder)))
    .flatMap((folder) => readdirSync(join(projectRoot(), folder)).map((file) => join(folder, file)))
    .filter((file) => /\.(sql|ts)$/.test(file) && !file.endsWith('.test.ts'))
    .sort();
}

/** Loading it takes 0.3 s (TypeORM): only the test file that builds the template pays for it. */
function loadMigrationRunner(): typeof import('../tools/migrate/src/migrate') {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- import() is native in the compiled output and finds no .ts under jest
  return require('../tools/migrate/src/migrate') as typeof import('../tools/migrate/src/migrate');
}

function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  // A lost connection reaches whoever asked the query; the event of its own would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
