import { availableParallelism, hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { integer, list, loadConfig, milliseconds, port, secret, secretKey, secretUrl, url } from '#runtime/config';

export const configSchema = z.object({
  KAFKA_BROKERS: list().describe('Brokers to start from'),
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('PostgreSQL, as punctual_api'),
  TOPIC_PREFIX: z.string().max(100).default('punctual.').describe('Stands before every topic name'),
  HOST: z.string().default('127.0.0.1').describe('Address to listen on'),
  PORT: port().default(8080).describe('Where the API listens'),
  PUBLIC_URL: url('http', 'https')
    .optional()
    .describe('Where customers reach the API, for links in answers; the own address if absent'),
  INSTANCE_ID: z
    .string()
    .max(100)
    .default(`${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`)
    .describe('Name of this process'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least important lines that are logged'),
  HEADERS_DEADLINE_MS: milliseconds({ min: 100, max: 300_000 })
    .default(20_000)
    .describe('A connection on which the headers of a request are not whole after this time is closed'),
  BODY_DEADLINE_MS: milliseconds({ min: 100, max: 600_000 })
    .default(30_000)
    .describe('A JSON body that is not whole after this time is refused; uploads have UPLOAD_STALL_MS instead'),
  DRAIN_DEADLINE_MS: milliseconds({ max: 600_000 }).default(10_000).describe('Time for open requests after SIGTERM'),
  ID_KEY: secretKey().describe('Derives message ids from recipients; never rotates'),
  CREDENTIALS_KEY: secretKey().describe('Seals credentials and webhook secrets; the same in sender and receipts'),
  OPERATOR_KEY: secret({ min: 16 }).describe('Opens /v1/admin'),
  UPLOAD_MAX_BYTES: integer({ min: 1_024, max: 8_589_934_592 })
    .default(536_870_912)
    .describe('Size of an uploaded audience at most, after decompression'),
  UPLOAD_MAX_RECIPIENTS: integer({ min: 1, max: 50_000_000 })
    .default(5_000_000)
    .describe(
      'Recipients of an uploaded audience at most; while it is read each takes 24 bytes of memory. A file may have twice as many rows, blank, repeated and rejected ones included',
    ),
  UPLOADS_AT_ONCE: integer({ min: 1, max: 64 }).default(4).describe('Uploads that this process reads at the same time'),
  UPLOADS_AT_ONCE_PER_TENANT: integer({ min: 1, max: 64 }).default(2).describe('How many of these are for one tenant, at most'),
  UPLOAD_STALL_MS: milliseconds({ min: 100, max: 300_000 })
    .default(60_000)
    .describe('An upload whose client does not send 16 KB in this time is given up'),
  UPLOAD_THREADS: integer({ min: 1, max: 32 })
    .default(Math.min(4, availableParallelism()))
    .describe('Threads that validate recipients of uploads'),
  HOLD_GIVE_UP_MS: milliseconds({ min: 1_000 }).default(604_800_000).describe('After this long a message that is held fails'),
});
export type ApiConfig = z.output<typeof configSchema>;

export function readConfig(env: NodeJS.ProcessEnv = process.env): ApiConfig {
  return loadConfig(configSchema, env);
}
