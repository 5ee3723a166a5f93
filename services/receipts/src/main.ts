import 'reflect-metadata';
import { ConfigError } from '#runtime/config';
import { openLog } from '#runtime/log';
import { readConfig, type ReceiptsConfig } from './config';
import { composeReceipts } from './start-receipts';

function main(): void {
  let config: ReceiptsConfig;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const log = openLog({ service: 'receipts', level: config.LOG_LEVEL, fields: { numberId: 'id', runId: 'id' } });
  composeReceipts(config, log).lifecycle.run();
}

main();
