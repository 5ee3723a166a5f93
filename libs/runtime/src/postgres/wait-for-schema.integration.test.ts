import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../../test-support/isolation';
import { openDatabase, type PostgresDatabase } from './open-database';
import { openLog } from '../log';
import { waitUntil } from '../wait-until';
import { schemaVersion, shippedSchemaVersion, waitForSchema } from './wait-for-schema';

let test: TestDatabase;
let database: PostgresDatabase;

beforeAll(async () => {
  test = await createTestDatabase({ migrated: false });
  database = await openDatabase({ url: test.adminUrl, name: 'schema' });
});

afterAll(async () => {
  await database.close();
  await test.drop();
});

it('waits until the database has the version that this build was made for, or a later one', async () => {
  expect(shippedSchemaVersion()).toBeGreaterThan(0);
  expect(await schemaVersion(database)).toBe(0);
  let arrived = false;
  const waiting = waitForSchema(database, 3, { everyMs: 20 }).then(() => (arrived = true));
  const sql = new Client({ connectionString: test.adminUrl });
  await sql.connect();
  await sql.query('CREATE SCHEMA punctual; CREATE TABLE punctual.schema_version AS SELECT 2 AS version');
  expect(await schemaVersion(database)).toBe(2);
  expect(arrived).toBe(false);
  await sql.query('UPDATE punctual.schema_version SET version = 4');
  await waiting;
  await sql.end();
});

it('ends its waiting when it is told to', async () => {
  const stop = new AbortController();
  const waiting = waitForSchema(database, 99, { everyMs: 20, signal: stop.signal });
  stop.abort();
  await waiting;
});

it('says once what it waits for, and again when that has changed', async () => {
  const lines: string[] = [];
  let asked = 0;
  const counting = {
    ...database,
    rows: ((statement, values) => {
      asked++;
      return database.rows(statement, values);
    }) as PostgresDatabase['rows'],
  } as PostgresDatabase;
  const log = openLog({ service: 'test', level: 'info', write: (line) => void lines.push(line) });
  const waiting = waitForSchema(counting, 99, { everyMs: 1, log });
  const askedAgain = async (): Promise<void> => {
    const before = asked;
    await waitUntil('some more rounds', () => asked > before + 60);
  };
  await askedAgain();
  expect(lines.map((line) => JSON.parse(line).waitingFor)).toEqual(['version 99, found 4']);
  await database.pool.query('UPDATE punctual.schema_version SET version = 5');
  await askedAgain();
  expect(lines.map((line) => JSON.parse(line).waitingFor)).toEqual(['version 99, found 4', 'version 99, found 5']);
  await database.pool.query('UPDATE punctual.schema_version SET version = 99');
  await waiting;
});
