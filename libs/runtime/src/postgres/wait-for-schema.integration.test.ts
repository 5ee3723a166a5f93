import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../../test-support/isolation';
import { openDatabase, type PostgresDatabase } from './open-database';
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
