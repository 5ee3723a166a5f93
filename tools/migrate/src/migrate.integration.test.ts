import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../test-support/isolation';
import { migrate } from './migrate';
import { planMigrations } from './plan-migrations';

jest.setTimeout(60_000);

let test: TestDatabase;
let sql: Client;
let folder: string;

beforeEach(async () => {
  test = await createTestDatabase({ migrated: false });
  sql = new Client({ connectionString: test.adminUrl });
  await sql.connect();
  folder = mkdtempSync(join(tmpdir(), 'migrations-'));
});

afterEach(async () => {
  await sql.end();
  await test.drop();
  rmSync(folder, { recursive: true });
});

function write(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    const full = join(folder, path.replace('/', '/migrations/'));
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
  }
}

const run = () => migrate(test.adminUrl, { servicesFolder: folder, env: {} });

it('applies all first files before any second one, in the order of the services, once', async () => {
  write({
    'api/001-tables.sql': 'CREATE TABLE api.schedule (id int PRIMARY KEY);',
    'api/002-functions.sql': 'CREATE FUNCTION api.three() RETURNS int LANGUAGE sql AS $$ SELECT sender.two() + 1 $$;',
    'sender/001-tables.sql': 'CREATE TABLE sender.claim (id int PRIMARY KEY);',
    'sender/002-functions.sql': 'CREATE FUNCTION sender.two() RETURNS int LANGUAGE sql AS $$ SELECT 2 $$;',
    'receipts/001-tables.sql': 'CREATE TABLE receipts.message (id int PRIMARY KEY);',
  });
  const first = await run();
  expect(first).toEqual({
    applied: [
      'sender/001-tables.sql',
      'api/001-tables.sql',
      'receipts/001-tables.sql',
      'sender/002-functions.sql',
      'api/002-functions.sql',
    ],
    version: 5,
  });
  expect(await run()).toEqual({ applied: [], version: 5 });
  write({ 'api/003-more.sql': 'ALTER TABLE api.schedule ADD COLUMN name text;' });
  expect((await run()).applied).toEqual(['api/003-more.sql']);
  expect((await sql.query('SELECT version FROM punctual.schema_version')).rows).toEqual([{ version: 6 }]);
});

it('owns everything as punctual_migrator and gives the services what they were granted, no more', async () => {
  write({
    'sender/001-tables.sql': 'CREATE TABLE sender.claim (id int PRIMARY KEY);',
    'sender/002-functions.sql': `
      CREATE FUNCTION sender.granted() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$ SELECT count(*) FROM sender.claim $$;
      CREATE FUNCTION sender.hidden() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;`,
    'sender/003-grants.sql':
      'GRANT USAGE ON SCHEMA sender TO punctual_api; GRANT EXECUTE ON FUNCTION sender.granted() TO punctual_api;',
  });
  await run();
  const { rows } = await sql.query(`SELECT tableowner FROM pg_tables WHERE schemaname = 'sender'`);
  expect(rows).toEqual([{ tableowner: 'punctual_migrator' }]);
  const api = new Client({ connectionString: test.urlFor('punctual_api') });
  await api.connect();
  try {
    expect((await api.query('SELECT sender.granted() AS n')).rows).toEqual([{ n: '0' }]);
    expect((await api.query('SELECT version FROM punctual.schema_version')).rows).toEqual([{ version: 3 }]);
    await expect(api.query('SELECT * FROM sender.claim')).rejects.toMatchObject({ code: '42501' });
    await expect(api.query('SELECT sender.hidden()')).rejects.toMatchObject({ code: '42501' });
    await expect(api.query('CREATE TABLE api.own (id int)')).rejects.toMatchObject({ code: '42501' });
  } finally {
    await api.end();
  }
});

it('is safe when several run at once, and on several databases', async () => {
  write({ 'sender/001-tables.sql': 'CREATE TABLE sender.claim (id int PRIMARY KEY); SELECT pg_sleep(0.1);' });
  const other = await createTestDatabase({ migrated: false });
  try {
    const results = await Promise.all([
      run(),
      run(),
      run(),
      migrate(other.adminUrl, { servicesFolder: folder, env: { DATABASE_PASSWORD_SENDER: "it's" } }),
    ]);
    expect(results.map(({ version }) => version)).toEqual([1, 1, 1, 1]);
    expect(results.slice(0, 3).filter(({ applied }) => applied.length === 1)).toHaveLength(1);
    expect(results[3]!.applied).toHaveLength(1);
  } finally {
    await other.drop();
    await sql.query('ALTER ROLE punctual_sender PASSWORD NULL');
  }
});

it('names a file that was changed after it was applied, and does nothing', async () => {
  write({ 'sender/001-tables.sql': 'CREATE TABLE sender.claim (id int PRIMARY KEY);' });
  await run();
  write({
    'sender/001-tables.sql': 'CREATE TABLE sender.claim (id bigint PRIMARY KEY);',
    'sender/002-more.sql': 'CREATE TABLE sender.more (id int);',
  });
  await expect(run()).rejects.toThrow(/changed since: sender\/001-tables\.sql/);
  expect((await sql.query(`SELECT to_regclass('sender.more') AS more`)).rows).toEqual([{ more: null }]);
});

it('names file and line of a statement that fails, keeps what was before it, and goes on from there when it is put right', async () => {
  write({
    'sender/001-tables.sql': 'CREATE TABLE sender.claim (id int PRIMARY KEY);',
    'sender/002-functions.sql': 'CREATE TABLE sender.half (id int);\n\nCREATE TABEL sender.wrong (id int);',
  });
  await expect(run()).rejects.toThrow('services/sender/migrations/002-functions.sql, line 3: syntax error');
  expect(
    (await sql.query(`SELECT to_regclass('sender.claim') IS NOT NULL AS claim, to_regclass('sender.half') IS NULL AS no_half`))
      .rows,
  ).toEqual([{ claim: true, no_half: true }]);
  write({ 'sender/002-functions.sql': 'CREATE TABLE sender.half (id int);' });
  expect((await run()).applied).toEqual(['sender/002-functions.sql']);
});

it('refuses statements that forget to name their schema, and files that are misnamed', async () => {
  write({ 'sender/001-tables.sql': 'CREATE TABLE claim (id int PRIMARY KEY);' });
  await expect(run()).rejects.toThrow('no schema has been selected');
  write({ 'sender/1-x.sql': '' });
  expect(() => planMigrations(folder)).toThrow('sender/migrations/1-x.sql');
  rmSync(join(folder, 'sender'), { recursive: true });
  write({ 'sender/001-a.sql': '', 'sender/001-b.sql': '' });
  expect(() => planMigrations(folder)).toThrow('same number');
  rmSync(join(folder, 'sender'), { recursive: true });
  write({ 'billing/001-a.sql': '' });
  expect(() => planMigrations(folder)).toThrow('billing');
});

it('applies the migrations of this repository', async () => {
  const files = planMigrations();
  const { applied, version } = await migrate(test.adminUrl, { env: {} });
  expect(applied).toEqual(files.map(({ file }) => file));
  expect(version).toBe(files.length);
  expect((await migrate(test.adminUrl, { env: {} })).applied).toEqual([]);
});
