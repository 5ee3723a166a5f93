import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { endLeftoversOf } from '../tools/local-stack/src/owned-folder';
import { readProcess } from '../tools/local-stack/src/process-identity';
import { projectRoot } from '../tools/local-stack/src/project-root';
import { startLocalStack } from '../tools/local-stack/src/start-local-stack';
import { holdRunningServers } from './running-servers';

const PREFIX = 'jest-';

/**
 * Before the tests of a run: one broker, one PostgreSQL and one Redis for all of them, each only where its environment variable
 * (KAFKA_BROKERS, DATABASE_URL, REDIS_URL) does not name one. Workers inherit the addresses through the environment.
 * Jest does not apply moduleNameMapper to this file, so it imports by relative paths only.
 */
export default async function startServers(): Promise<void> {
  const parent = join(projectRoot(), '.punctual');
  await removeFoldersOfDeadRuns(parent);
  const given = { ...process.env };
  const stack = await startLocalStack({
    folder: join(parent, `${PREFIX}${process.pid}`),
    removeOnStop: true,
    progress: (message) => process.stderr.write(`${message}\n`),
  });
  Object.assign(process.env, stack.env);
  holdRunningServers({
    stop: async () => {
      // A watch run calls us again and must not take the stopped servers for given ones.
      for (const name of Object.keys(stack.env)) {
        if (given[name] === undefined) delete process.env[name];
        else process.env[name] = given[name];
      }
      await stack.stop();
    },
  });
}

/** A run that was killed leaves its folder behind, named after its pid. */
async function removeFoldersOfDeadRuns(parent: string): Promise<void> {
  for (const folder of readFolders(parent)) {
    const pid = Number(folder.slice(PREFIX.length));
    if (!folder.startsWith(PREFIX) || !Number.isInteger(pid) || readProcess(pid) !== undefined) continue;
    await endLeftoversOf(['kafka', 'postgres', 'redis'].map((server) => join(parent, folder, server)));
    rmSync(join(parent, folder), { recursive: true, force: true });
  }
}

function readFolders(parent: string): string[] {
  try {
    return readdirSync(parent);
  } catch {
    return [];
  }
}
