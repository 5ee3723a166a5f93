import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { requireMaven } from './find-program';
import { LocalStackError } from './local-stack-error';
import { projectRoot } from './project-root';

const MAVEN_DEADLINE_MS = 300_000;

interface Artifact {
  title: string;
  replacedBy: string;
  goal: string[];
  /** Sanity check of what was fetched. */
  contains: RegExp;
}

const ARTIFACTS = {
  kafka: {
    title: 'Apache Kafka',
    replacedBy: 'KAFKA_BROKERS',
    goal: ['dependency:copy-dependencies', '-DincludeScope=runtime'],
    contains: /^kafka_2\.13-.*\.jar$/,
  },
  redis: {
    title: 'redis-server',
    replacedBy: 'REDIS_URL',
    goal: [
      '-P',
      'redis',
      'dependency:unpack-dependencies',
      '-DincludeArtifactIds=embedded-redis',
      '-Dmdep.unpack.includes=redis-server-*',
    ],
    contains: /^redis-server-/,
  },
} as const satisfies Record<string, Artifact>;

export interface FetchOptions {
  progress?: (message: string) => void;
  signal?: AbortSignal;
}

/**
 * The folder with what deploy/local/pom.xml pins, fetched by Maven the first time and kept under a name that changes with
 * the pom. Starts that fetch at the same time each use their own folder; the first to finish wins.
 */
export async function fetchArtifact(name: keyof typeof ARTIFACTS, options: FetchOptions = {}): Promise<string> {
  const artifact = ARTIFACTS[name];
  const pom = join(projectRoot(), 'deploy', 'local', 'pom.xml');
  const version = createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 12);
  const cache = join(projectRoot(), '.punctual', 'cache');
  const target = join(cache, `${name}-${version}`);
  if (existsSync(target)) return target;

  const maven = requireMaven(`${artifact.title} is fetched with Maven once`, artifact.replacedBy);
  options.progress?.(`Fetching ${artifact.title} with Maven (only the first time) ...`);
  const draft = join(cache, `${name}-${version}.draft-${process.pid}`);
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const goal = [...artifact.goal, `-DoutputDirectory=${draft}`, `-DmarkersDirectory=${draft}/markers`];
    await runMaven(maven, ['-q', '-B', '-f', pom, ...goal], artifact, options.signal);
    if (!readdirSync(draft).some((file) => artifact.contains.test(file)))
      throw failed(artifact, 'Maven fetched other files than expected');
    try {
      renameSync(draft, target);
    } catch (error) {
      if (!existsSync(target)) throw error;
    }
    return target;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function runMaven(maven: string, args: string[], artifact: Artifact, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(maven, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: MAVEN_DEADLINE_MS, signal });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
    child.once('error', (error) => reject(failed(artifact, error.message, error)));
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(failed(artifact, output.trim().split('\n').slice(-8).join('\n'))),
    );
  });
}

function failed(artifact: Artifact, reason: string, cause?: unknown): LocalStackError {
  return new LocalStackError(
    'download_failed',
    `Maven could not fetch ${artifact.title}. Check that Maven reaches its repository (proxy and mirror go in ~/.m2/settings.xml) and start again, ` +
      `or set ${artifact.replacedBy} to a server that already runs. Maven said:\n${reason}`,
    { cause },
  );
}
