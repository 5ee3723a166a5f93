import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import { list, loadConfig, milliseconds, port, secretKey, secretUrl } from '#runtime/config';

export const configSchema = z.object({
  KAFKA_BROKERS: list().describe('Brokers to start from'),
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('PostgreSQL, as punctual_receipts'),
  TOPIC_PREFIX: z.string().max(100).default('punctual.').describe('Stands before every topic name and consumer group'),
  HOST: z.string().default('127.0.0.1').describe('Address to listen on'),
  PORT: port().default(8081).describe('Where providers post their webhooks'),
  INSTANCE_ID: z
    .string()
    .max(100)
    .default(`${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`)
    .describe('Name of this process'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least important lines that are logged'),
  DRAIN_DEADLINE_MS: milliseconds({ max: 600_000 }).default(10_000).describe('Time for what is under way after SIGTERM'),
  TOKEN_KEY: secretKey().describe('Signs attempt tokens; the same in the sender'),
  CREDENTIALS_KEY: secretKey().describe('Opens webhook secrets; the same in api and sender'),
  EVIDENCE_WINDOW_MS: milliseconds({ min: 1_000 })
    .default(900_000)
    .describe('How long after the end of a run its messages may still get evidence before they are told as final'),
  PROGRESS_EVERY_MS: milliseconds({ min: 100 }).default(1_000).describe('How often the progress of a run is told at most'),
});
export type ReceiptsConfig = z.output<typeof configSchema>;

export function readConfig(env: NodeJS.ProcessEnv = process.env): ReceiptsConfig {
  return loadConfig(configSchema, env);
}
