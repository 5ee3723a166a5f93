import { createServer, connect as connectSocket, type Socket } from 'node:net';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../../test-support/isolation';
import { isRetriable } from '../retriable';
import { waitUntil } from '../wait-until';
import { dedicatedClient } from './dedicated-client';
import { DatabaseUnavailableError, sqlState } from './failures';
import { openDatabase, type DatabaseOptions, type PostgresDatabase } from './open-database';
import { retrying } from './retrying';
import { statement } from './sql-file';

jest.setTimeout(60_000);

const ONE = statement('one', 'SELECT 1 AS one');
const stops: (() => Promise<void>)[] = [];
let test: TestDatabase;
let sql: Client;

beforeAll(async () => {
  test = await createTestDatabase({ migrated: false });
  sql = new Client({ connectionString: test.adminUrl });
  await sql.connect();
  await sql.query('CREATE TABLE pair (id int PRIMARY KEY, value int NOT NULL); INSERT INTO pair VALUES (1, 0), (2, 0)');
});

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

afterAll(async () => {
  await sql.end();
  await test.drop();
});

async function open(options: Partial<DatabaseOptions> = {}): Promise<PostgresDatabase> {
  const database = await openDatabase({ url: test.adminUrl, name: 'test-pool', ...options });
  stops.push(() => database.close());
  return database;
}

const killPool = (name = 'test-pool') =>
  sql.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()`,
    [name],
  );

describe('openDatabase', () => {
  it('prepares statements once per connection and answers rows', async () => {
    const database = await open({ max: 1 });
    expect(await database.rows(ONE)).toEqual([{ one: 1 }]);
    expect(await database.rows(ONE)).toEqual([{ one: 1 }]);
    const [row] = await database.rows(
      statement('count', 'SELECT count(*)::int AS count FROM pg_prepared_statements WHERE name = $1'),
      [ONE.name],
    );
    expect(row).toEqual({ count: 1 });
  });

  it('limits statements, idle transactions and locks as told', async () => {
    const database = await open({ statementTimeoutMs: 4_000, idleInTransactionTimeoutMs: 3_000, lockTimeoutMs: 2_000 });
    const shown = async (name: string) =>
      (await database.rows<{ value: string }>(statement(name, `SELECT current_setting('${name}') AS value`)))[0]!.value;
    expect(await shown('statement_timeout')).toBe('4s');
    expect(await shown('idle_in_transaction_session_timeout')).toBe('3s');
    expect(await shown('lock_timeout')).toBe('2s');
  });

  it('keeps a connection after an error of a statement, and drops it after its death', async () => {
    const database = await open({ max: 1 });
    const pid = statement('pid', 'SELECT pg_backend_pid() AS pid');
    const [before] = await database.rows(pid);
    await expect(database.rows(statement('twice', 'INSERT INTO pair VALUES (1, 1)'))).rejects.toMatchObject({ code: '23505' });
    expect((await database.rows(pid))[0]).toEqual(before);
    const sleeping = database.rows(statement('sleep', 'SELECT pg_sleep(5)'));
    sleeping.catch(() => undefined);
    await waitUntil(
      'it sleeps',
      async () =>
        (await sql.query(`SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'`)).rowCount,
    );
    await killPool();
    await expect(sleeping).rejects.toThrow(DatabaseUnavailableError);
    expect((await database.rows(pid))[0]).not.toEqual(before);
  });

  it('survives the death of idle connections', async () => {
    const database = await open();
    await Promise.all([1, 2, 3].map(() => database.rows(ONE)));
    await killPool();
    await waitUntil('it answers again', () => database.rows(ONE).catch(() => undefined));
  });

  it('tells faults of the server from errors of the statement', async () => {
    const database = await open({ statementTimeoutMs: 200 });
    const slow = await database.rows(statement('slow', 'SELECT pg_sleep(3)')).catch((error: unknown) => error);
    expect([isRetriable(slow), sqlState(slow)]).toEqual([true, '57014']);
    const wrong = await database.rows(statement('wrong', 'SELECT 1/0')).catch((error: unknown) => error);
    expect([isRetriable(wrong), sqlState(wrong)]).toEqual([false, '22012']);
  });

  it('repeats transactions that deadlock until both are through', async () => {
    const database = await open();
    let bothIn = 0;
    const transfer = (first: number, second: number) =>
      database.transaction(async ({ rows }) => {
        await rows(statement('bump', 'UPDATE pair SET value = value + 1 WHERE id = $1'), [first]);
        bothIn++;
        await waitUntil('both hold one', () => bothIn >= 2);
        await rows(statement('bump', 'UPDATE pair SET value = value + 1 WHERE id = $1'), [second]);
      });
    await Promise.all([transfer(1, 2), transfer(2, 1)]);
    expect(bothIn).toBeGreaterThan(2);
    expect((await sql.query('SELECT id, value FROM pair ORDER BY id')).rows).toEqual([
      { id: 1, value: 2 },
      { id: 2, value: 2 },
    ]);
  });

  it('rolls back what fails', async () => {
    const database = await open();
    await expect(
      database.transaction(async ({ rows }) => {
        await rows(statement('add', 'INSERT INTO pair VALUES (9, 9)'));
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(await database.rows(statement('nine', 'SELECT 1 FROM pair WHERE id = 9'))).toEqual([]);
  });

  it('waits for a server that is not there yet, and ends its waiting when told to', async () => {
    const door = await doorTo(test.adminUrl);
    const opening = open({ url: door.url });
    await waitUntil('it knocks', () => door.refused() > 1);
    door.open();
    expect(await (await opening).rows(ONE)).toEqual([{ one: 1 }]);
    door.shut();
    const stop = new AbortController();
    const giveUp = openDatabase({ url: door.url, name: 'never', signal: stop.signal }).catch(() => 'given up');
    stop.abort();
    expect(await giveUp).toBe('given up');
  });

  it('waits for a role and a database that the first migration has yet to make', async () => {
    const url = new URL(test.adminUrl);
    const name = `late_${process.pid}`;
    url.username = name;
    url.password = '';
    const opening = open({ url: url.href });
    const admin = await open({ url: test.adminUrl });
    await admin.rows(statement('late_role', `CREATE ROLE ${name} LOGIN`));
    expect(await (await opening).rows(ONE)).toEqual([{ one: 1 }]);
    await (await opening).close();
    await admin.rows(statement('late_role_gone', `DROP ROLE ${name}`));
  });
});

describe('retrying', () => {
  it('repeats a lost connection only for work that may run twice', async () => {
    let calls = 0;
    const work = async () => {
      if (++calls < 3) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      return calls;
    };
    await expect(retrying(work)).rejects.toThrow('reset');
    calls = 0;
    expect(await retrying(work, { idempotent: true })).toBe(3);
  });

  it('repeats the states it was told', async () => {
    let calls = 0;
    const work = async () => {
      if (++calls < 3) throw Object.assign(new Error('lock'), { code: '55P03', severity: 'ERROR' });
      return calls;
    };
    await expect(retrying(work)).rejects.toThrow('lock');
    calls = 0;
    expect(await retrying(work, { states: ['55P03'] })).toBe(3);
  });
});

describe('dedicatedClient', () => {
  it('holds locks that others can not take, and gives them back', async () => {
    const [one, two] = await Promise.all([1, 2].map(() => dedicatedClient({ url: test.adminUrl, name: 'locks' })));
    stops.push(
      () => one!.close(),
      () => two!.close(),
    );
    expect(await one!.tryLock(77, 1)).toBe(true);
    expect(await one!.tryLock(77, 1)).toBe(true);
    expect(await two!.tryLock(77, 1)).toBe(false);
    expect(await two!.tryLock(78, 1)).toBe(true);
    await one!.unlock(77, 1);
    expect(await two!.tryLock(77, 1)).toBe(true);
    expect(one!.holds(77, 1)).toBe(false);
  });

  it('says at once that its locks are gone, reconnects, and listens again', async () => {
    let woken = 0;
    const one = await dedicatedClient({ url: test.adminUrl, name: 'cut-off' });
    stops.push(() => one.close());
    await one.listen('some_channel', () => woken++);
    await one.tryLock(79, 1);
    await killPool('cut-off');
    await waitUntil('it notices', () => !one.holds(79, 1));
    await waitUntil('it is back', () => one.connected && one.connection === 2);
    expect(await one.tryLock(79, 1)).toBe(true);
    const before = woken;
    await sql.query('NOTIFY some_channel');
    await waitUntil('it hears', () => woken > before);
  });

  it('does not trust locks of a connection that has gone silent', async () => {
    const door = await doorTo(test.adminUrl);
    door.open();
    const one = await dedicatedClient({ url: door.url, name: 'silent', answerTimeoutMs: 300 });
    stops.push(() => one.close());
    await one.tryLock(80, 1);
    door.freeze();
    await waitUntil('it gives them up', () => !one.holds(80, 1));
    door.open();
    await waitUntil('it is back', () => one.connected);
  });
});

/** A port before the server that can be shut (refuses), open, or frozen (takes, and answers nothing). */
async function doorTo(url: string) {
  const target = new URL(url);
  let state: 'shut' | 'open' | 'frozen' = 'shut';
  let refused = 0;
  const through = new Set<Socket>();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (state !== 'open') {
      refused++;
      if (state === 'shut') socket.destroy();
      return;
    }
    const far = connectSocket(Number(target.port || 5432), target.hostname);
    for (const end of [socket, far])
      end.on('error', () => undefined).on('close', () => (socket.destroy(), far.destroy(), through.delete(far)));
    through.add(far);
    socket.pipe(far).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(async () => {
    server.close();
    for (const far of through) far.destroy();
  });
  const near = new URL(url);
  near.port = String((server.address() as { port: number }).port);
  near.hostname = '127.0.0.1';
  return {
    url: near.href,
    refused: () => refused,
    open: () => void (state = 'open'),
    shut: () => void (state = 'shut'),
    freeze: () => {
      state = 'frozen';
      for (const far of through) far.unpipe();
    },
  };
}
