import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import { integer, list, loadConfig, milliseconds, port, secretUrl } from '#runtime/config';

export const configSchema = z.object({
  KAFKA_BROKERS: list().describe('Brokers to start from'),
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('PostgreSQL, as punctual_scheduler'),
  TOPIC_PREFIX: z.string().max(100).default('punctual.').describe('Stands before every topic name'),
  HOST: z.string().default('127.0.0.1').describe('Address to listen on, for health and metrics'),
  PORT: port().default(8082).describe('Where health and metrics are served'),
  INSTANCE_ID: z
    .string()
    .max(100)
    .default(`${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`)
    .describe('Name of this process; names the holder of a lease'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least important lines that are logged'),
  DRAIN_DEADLINE_MS: milliseconds({ max: 600_000 }).default(10_000).describe('Time for releases under way after SIGTERM'),
  DATABASE_CONNECTIONS: integer({ min: 4, max: 100 })
    .default(6)
    .describe('PostgreSQL connections for everything but releases, which have RELEASE_IN_FLIGHT and one of their own'),
  CREDIT_AGE_MS: milliseconds({ min: 100 }).default(5_000).describe('Credit that was reported longer ago is none'),
  RELEASE_LEASE_MS: milliseconds({ min: 100 }).default(5_000).describe('How long one release may keep a number from the others'),
  RELEASE_RECORDS: integer({ min: 1, max: 50_000 })
    .default(2_000)
    .describe('Messages picked in one round: more is cheaper, fewer is sooner for the first'),
  RELEASE_NUMBERS: integer({ min: 1, max: 5_000 }).default(100).describe('Numbers served in one round'),
  RELEASE_RUNS: integer({ min: 1, max: 1_000 }).default(32).describe('Runs of one number that share its credit in one round'),
  RELEASE_IN_FLIGHT: integer({ min: 1, max: 16 }).default(3).describe('Rounds that wait for Kafka while the next is picked'),
  WAKE_RUNS: integer({ min: 1, max: 50_000 }).default(500).describe('Entries of the due index woken in one round'),
  POLL_MS: milliseconds({ min: 10 })
    .default(1_000)
    .describe('Look at the due index at least this often, whatever timers and notifications say'),
  UNSERVED_POLL_MS: milliseconds({ min: 5 }).default(100).describe('The same while due messages wait for credit'),
  UNANSWERED_AFTER_MS: milliseconds({ min: 100 })
    .default(60_000)
    .describe('A run that was handed over is released again after this long, without those that the gate has answered'),
  HOLD_GIVE_UP_MS: milliseconds({ min: 1_000 }).default(604_800_000).describe('After this long a run that is held fails'),
  SWEEP_MS: milliseconds({ min: 10 }).default(1_000).describe('Between looks for what time alone changes'),
  LOOK_AGAIN_MS: milliseconds({ min: 10 }).default(5_000).describe('Between looks at a run that was set aside'),
  RUN_RETENTION_MS: milliseconds({ min: 86_400_000 }).default(7_776_000_000).describe('How long runs are kept that have ended'),
});
export type SchedulerConfig = z.output<typeof configSchema>;

export function readConfig(env: NodeJS.ProcessEnv = process.env): SchedulerConfig {
  return loadConfig(configSchema, env);
}
