import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Redis from 'ioredis';
import { fetchArtifact, type FetchOptions } from './fetch-artifacts';
import { findProgram } from './find-program';
import { LocalStackError } from './local-stack-error';
import { OwnedFolder } from './owned-folder';
import { releasePorts, wantedPort } from './pick-port';
import { ServerProcess } from './server-process';
import { startAgainOnOtherPorts } from './start-again';
import { waitForAnswer } from './wait-for-answer';

export interface RedisOptions {
  folder: string;
  port?: number;
  keep?: boolean;
  removeOnStop?: boolean;
  startDeadlineMs?: number;
  /** Takes the binary from the Maven artifact even if the system has one. */
  ignoreSystemProgram?: boolean;
  progress?: (message: string) => void;
  signal?: AbortSignal;
}

export interface RunningRedis {
  url: string;
  stop(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data, after a kill or a clean stop. */
  restart(): Promise<void>;
  pause(): void;
  resume(): void;
}

export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const program = await findRedis(options);
  const folder = await OwnedFolder.claim(options.folder, { keep: options.keep });
  try {
    return await startAgainOnOtherPorts(options.port === undefined, () => startServer(program, folder, options));
  } catch (error) {
    folder.release();
    throw error;
  }
}

async function startServer(program: string, folder: OwnedFolder, options: RedisOptions): Promise<RunningRedis> {
  const port = await wantedPort('Redis', options.port);
  const data = join(folder.path, 'data');
  mkdirSync(data, { recursive: true });
  const url = `redis://127.0.0.1:${port}`;
  const server = new ServerProcess(folder, {
    name: 'Redis',
    program,
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', data, '--daemonize', 'no'],
      ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec', '--maxmemory-policy', 'noeviction'],
    ],
    cwd: data,
    logFile: join(folder.path, 'redis.log'),
    // Redis rewrites its command line to "redis-server 127.0.0.1:<port>": the folder cannot be a marker.
    markers: ['redis-server', String(port)],
    stopSignal: 'SIGTERM',
    orphanSignal: 'TERM',
    stopDeadlineMs: 10_000,
  });
  const readiness = { deadlineMs: options.startDeadlineMs ?? 20_000, signal: options.signal };
  const start = async (): Promise<void> => {
    server.start();
    await waitForAnswer(server, () => ping(url), readiness);
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
    pause: () => server.pause(),
    resume: () => server.resume(),
  };
}

async function ping(url: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0, connectTimeout: 1_000 });
  // Without a listener ioredis prints each refused connection; the rejection below carries the same error.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.disconnect();
  }
}

async function findRedis(options: FetchOptions & { ignoreSystemProgram?: boolean }): Promise<string> {
  const installed = options.ignoreSystemProgram === true ? undefined : findProgram('redis-server');
  if (installed !== undefined) return installed;
  const system = process.platform === 'darwin' ? 'darwin' : 'linux';
  const processor = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const folder = await fetchArtifact('redis', options);
  const binary = readdirSync(folder).find((file) => file.startsWith('redis-server-') && file.endsWith(`${system}-${processor}`));
  if (binary === undefined || (process.arch !== 'arm64' && process.arch !== 'x64')) {
    throw new LocalStackError(
      'program_missing',
      `No redis-server was found, and none is packaged for ${process.platform} on ${process.arch}. On Debian or Ubuntu install it with ` +
        `"sudo apt-get install redis-server" and start again, or set REDIS_URL to a server that already runs.`,
    );
  }
  chmodSync(join(folder, binary), 0o755);
  return join(folder, binary);
}
