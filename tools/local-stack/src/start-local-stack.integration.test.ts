import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import Redis from 'ioredis';
import { Client } from 'pg';
import { waitUntil } from '#runtime/wait-until';
import { findProgram } from './find-program';
import type { RecordedServer } from './owned-folder';
import { readProcess } from './process-identity';
import { projectRoot } from './project-root';
import { startLocalStack, type LocalStack } from './start-local-stack';
import { startPostgres, type RunningPostgres } from './start-postgres';
import { startRedis, type RunningRedis } from './start-redis';

const folder = (name: string): string => join(projectRoot(), '.punctual', `stack-test-${process.pid}`, name);
/** Kafka has a test of its own; here the shared broker stands in, so that each case takes seconds. */
const withoutKafka = { KAFKA_BROKERS: process.env.KAFKA_BROKERS };

/** A process of its own that starts Redis and never stops it; the sources are compiled as they are loaded. */
const START_REDIS_AND_STAY = `
  const { transformFileSync } = require('@swc/core');
  const options = { swcrc: false, jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } };
  require.extensions['.ts'] = (module, file) => module._compile(transformFileSync(file, options).code, file);
  require('./start-redis').startRedis({ folder: process.argv[1] }).then(() => process.stdout.write('ready'));
  setInterval(() => undefined, 60_000);
`;

afterAll(() => rm(folder('.'), { recursive: true, force: true }));

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function redisCall<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  client.on('error', () => undefined);
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

function recordedServers(path: string): RecordedServer[] {
  return (JSON.parse(readFileSync(join(path, 'owner.json'), 'utf8')) as { servers: RecordedServer[] }).servers;
}

describe('the local PostgreSQL', () => {
  let postgres: RunningPostgres;
  beforeAll(async () => {
    postgres = await startPostgres({ folder: folder('postgres'), removeOnStop: true });
  }, 60_000);
  afterAll(() => postgres?.stop());

  it('keeps what was committed through kill -9, on the same address', async () => {
    await query(postgres.url, 'CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)');
    await postgres.kill();
    await expect(query(postgres.url, 'SELECT 1')).rejects.toThrow();
    await postgres.restart();
    await expect(query(postgres.url, 'SELECT id FROM kept')).resolves.toEqual([{ id: 7 }]);
  }, 60_000);

  it('never trades durability for speed', async () => {
    const rows = await query(
      postgres.url,
      `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'jit', 'max_connections') ORDER BY name`,
    );
    expect(Object.fromEntries(rows.map((row) => Object.values(row as object) as [string, string]))).toEqual({
      fsync: 'on',
      full_page_writes: 'on',
      jit: 'off',
      max_connections: '300',
      synchronous_commit: 'on',
    });
  });
});

describe.each([
  ['of the system', false],
  ['of the Maven artifact', true],
])('the local Redis %s', (_, ignoreSystemProgram) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis({ folder: folder(`redis-${ignoreSystemProgram}`), ignoreSystemProgram, removeOnStop: true });
  }, 120_000);
  afterAll(() => redis?.stop());

  it('keeps its keys through a restart and never evicts any', async () => {
    await redisCall(redis.url, (client) => client.set('kept', 'yes'));
    await redis.restart();
    await expect(redisCall(redis.url, (client) => client.get('kept'))).resolves.toBe('yes');
    await expect(redisCall(redis.url, (client) => client.config('GET', 'maxmemory-policy'))).resolves.toEqual([
      'maxmemory-policy',
      'noeviction',
    ]);
  });

  it('starts again after kill -9', async () => {
    await redis.kill();
    await redis.restart();
    await expect(redisCall(redis.url, (client) => client.ping())).resolves.toBe('PONG');
  });
});

describe('the local stack', () => {
  it('runs side by side in different folders, once in each, and leaves nothing behind', async () => {
    const stacks: LocalStack[] = await Promise.all(
      ['a', 'b'].map((name) => startLocalStack({ folder: folder(name), environment: withoutKafka, removeOnStop: true })),
    );
    const pids = ['a', 'b'].flatMap((name) =>
      ['postgres', 'redis'].flatMap((server) => recordedServers(join(folder(name), server)).map(({ pid }) => pid)),
    );
    expect(pids.filter((pid) => readProcess(pid) !== undefined)).toHaveLength(4);
    expect(new Set(stacks.map(({ env }) => env.DATABASE_URL)).size).toBe(2);
    await expect(startLocalStack({ folder: folder('a'), environment: withoutKafka })).rejects.toThrow(`pid ${process.pid}`);
    await Promise.all(stacks.map((stack) => stack.stop()));
    expect(pids.filter((pid) => readProcess(pid) !== undefined)).toEqual([]);
    expect(existsSync(folder('a'))).toBe(false);
  }, 120_000);

  it('starts nothing for a server that the environment names', async () => {
    const environment = {
      KAFKA_BROKERS: 'kafka.example:9092',
      DATABASE_URL: 'postgres://db.example/x',
      REDIS_URL: 'redis://cache.example',
    };
    const stack = await startLocalStack({ folder: folder('none'), environment, removeOnStop: true });
    expect(stack.env).toEqual(environment);
    expect([stack.kafka, stack.postgres, stack.redis]).toEqual([undefined, undefined, undefined]);
    await stack.stop();
  });

  it('stops what already runs when one server cannot start', async () => {
    const taken = Number(new URL(process.env.REDIS_URL!).port);
    const start = startLocalStack({ folder: folder('failed'), environment: withoutKafka, ports: { redis: taken } });
    await expect(start).rejects.toMatchObject({ code: 'port_taken' });
    expect(existsSync(join(folder('failed'), 'owner.json'))).toBe(false);
    expect(existsSync(join(folder('failed'), 'postgres', 'owner.json'))).toBe(false);
  }, 60_000);

  it('can be cancelled while it starts', async () => {
    const cancel = new AbortController();
    const start = startLocalStack({ folder: folder('cancelled'), environment: withoutKafka, signal: cancel.signal });
    cancel.abort();
    await expect(start).rejects.toMatchObject({ code: 'stopped_while_starting' });
    expect(existsSync(join(folder('cancelled'), 'owner.json'))).toBe(false);
  }, 60_000);

  it('does not outlive its process, even one that is killed', async () => {
    const path = folder('orphaned');
    const owner = spawn(process.execPath, ['-e', START_REDIS_AND_STAY, path], {
      cwd: __dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => owner.stdout.once('data', resolve));
    const [server] = recordedServers(path);
    expect(readProcess(server!.pid)).toBeDefined();
    owner.kill('SIGKILL');
    if (findProgram('setpriv') !== undefined)
      await waitUntil('the server ends by itself', () => readProcess(server!.pid) === undefined);
    const next = await startRedis({ folder: path, removeOnStop: true });
    expect(readProcess(server!.pid)).toBeUndefined();
    await next.stop();
  }, 60_000);
});
