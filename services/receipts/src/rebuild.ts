import { systemClock } from '#runtime/clock';
import { ConfigError } from '#runtime/config';
import { openLog } from '#runtime/log';
import { openDatabase } from '#runtime/postgres/open-database';
import { waitForSchema } from '#runtime/postgres/wait-for-schema';
import { readConfig } from './config';
import { RebuildReadModel } from './rebuild/rebuild-read-model';

/** `node dist/services/receipts/src/rebuild.js`, with the environment of the service; the service may be running. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = openLog({ service: 'receipts-rebuild', level: config.LOG_LEVEL });
  const database = await openDatabase({
    url: config.DATABASE_URL.reveal(),
    name: 'receipts-rebuild',
    max: 2,
    statementTimeoutMs: 600_000,
    log,
  });
  try {
    await waitForSchema(database, undefined, { log });
    const { runs, messages } = await new RebuildReadModel(database, systemClock).rebuild(({ runs: count }) => {
      if (count % 1_000 === 0) log.info('rebuilding the read model', { count });
    });
    log.info(`the read model is rebuilt: ${messages} messages of ${runs} runs`);
  } finally {
    await database.close();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(error instanceof ConfigError ? `${error.message}\n` : `${String(error)}\n`);
  process.exitCode = 1;
});
