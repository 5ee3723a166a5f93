import 'reflect-metadata';
import { ConfigError } from '#runtime/config';
import { openLog } from '#runtime/log';
import { readConfig, type SchedulerConfig } from './config';
import { composeScheduler } from './start-scheduler';

function main(): void {
  let config: SchedulerConfig;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const log = openLog({
    service: 'scheduler',
    level: config.LOG_LEVEL,
    fields: { runId: 'id', scheduleId: 'id', from: 'number', until: 'number' },
  });
  composeScheduler(config, log).lifecycle.run();
}

main();
