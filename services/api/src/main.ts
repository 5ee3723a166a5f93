import { ConfigError } from '#runtime/config';
import { openLog } from '#runtime/log';
import { readConfig, type ApiConfig } from './config';
import { composeApi } from './app.module';

async function main(): Promise<void> {
  let config: ApiConfig;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const log = openLog({
    service: 'api',
    level: config.LOG_LEVEL,
    fields: { scheduleId: 'id', tenantId: 'id', audienceId: 'id' },
  });
  const { lifecycle } = await composeApi(config, log);
  lifecycle.run();
}

void main();
