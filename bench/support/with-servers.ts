import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalStack } from '#local-stack/start-local-stack';

/** Kafka, PostgreSQL and Redis for one bench: those that the environment names, else fresh ones that are gone afterwards. */
export async function withServers<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-bench-'));
  const given = { ...process.env };
  const stack = await startLocalStack({ folder, removeOnStop: true, progress: (line) => process.stderr.write(`${line}\n`) });
  Object.assign(process.env, stack.env);
  try {
    return await work(folder);
  } finally {
    for (const name of Object.keys(stack.env)) {
      if (given[name] === undefined) delete process.env[name];
      else process.env[name] = given[name];
    }
    await stack.stop();
  }
}
