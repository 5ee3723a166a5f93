import { loadConfig } from '#runtime/config';
import { openLog } from '#runtime/log';
import { senderConfig } from './config';
import { LOG_FIELDS } from './log-fields';
import { senderProcess } from './sender-process';

try {
  const config = loadConfig(senderConfig);
  senderProcess(config, openLog({ service: 'sender', level: config.LOG_LEVEL, fields: LOG_FIELDS })).lifecycle.run();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
