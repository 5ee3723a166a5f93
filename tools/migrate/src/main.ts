import { ConfigError, loadConfig, secretUrl } from '#runtime/config';
import { waitForDatabase } from './wait-for-database';
import { z } from 'zod';
import { migrate } from './migrate';

const schema = z.object({
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('PostgreSQL, as a role that may create roles and schemas'),
});

async function main(): Promise<void> {
  const config = loadConfig(schema);
  const log = (line: string) => void process.stdout.write(`${line}\n`);
  await waitForDatabase(config.DATABASE_URL.reveal(), { log });
  await migrate(config.DATABASE_URL.reveal(), { log });
}

main().catch((error: unknown) => {
  const text = error instanceof ConfigError || !(error instanceof Error) ? String(error) : `${error.message}`;
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
});
