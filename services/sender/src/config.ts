import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { integer, list, milliseconds, port, secretKey, secretUrl, url } from '#runtime/config';

export const senderConfig = z.object({
  KAFKA_BROKERS: list().describe('Brokers to start from'),
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('PostgreSQL, as punctual_sender'),
  REDIS_URL: secretUrl('redis', 'rediss').describe('Redis, where the send slots of all numbers are booked'),
  TOPIC_PREFIX: z.string().default('punctual.').describe('Begins the name of every topic and consumer group'),
  REDIS_PREFIX: z.string().default('punctual:').describe('Begins the name of every key in Redis'),
  HOST: z.string().default('127.0.0.1').describe('Where health and metrics are served'),
  PORT: port().default(8083).describe('Where health and metrics are served'),
  INSTANCE_ID: z
    .string()
    .default(() => `${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`)
    .describe('Names this process in attempts and credit reports; unique'),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info').describe('Least urgent lines that are written'),
  DRAIN_DEADLINE_MS: milliseconds({ min: 100 }).default(10_000).describe('From SIGTERM to the end, whatever is still out'),
  TOKEN_KEY: secretKey().describe('Signs the attempt tokens that providers send back; the same in sender and receipts'),
  CREDENTIALS_KEY: secretKey().describe('Opens the credentials of numbers; the same in api, sender and receipts'),
  WHATSAPP_LIVE_URL: url('https', 'http').default('https://graph.facebook.com').describe('Cloud API for live tenants'),
  WHATSAPP_TEST_URL: url('https', 'http').describe('Cloud API for test tenants: the provider simulator'),
  WHATSAPP_API_VERSION: z
    .string()
    .regex(/^v\d+\.\d+$/)
    .default('v25.0')
    .describe('Version of the Cloud API that is called'),
  PROVIDER_CONNECTIONS: integer({ min: 1, max: 10_000 })
    .default(512)
    .describe('Connections per provider host at most; at least rate x latency over all numbers'),
  PROVIDER_DEADLINE_MS: milliseconds({ min: 200, max: 120_000 })
    .default(10_000)
    .describe('From the claim to the last moment for an answer'),
  DEADLINE_GRACE_MS: milliseconds()
    .default(5_000)
    .describe('How long after the deadline a claim without a result becomes uncertain'),
  EVIDENCE_WINDOW_MS: milliseconds()
    .default(900_000)
    .describe('How long evidence may come before an uncertain message is unconfirmed'),
  RESEND_AFTER_MS: milliseconds()
    .default(60_000)
    .describe('Wait after the deadline before an uncertain message is sent again, where its schedule asks for that'),
  LANE_WINDOW_MS: milliseconds({ min: 100, max: 60_000 })
    .default(2_000)
    .describe('How much work each number takes on, in time at its rate'),
  SLOT_HORIZON_MS: milliseconds({ min: 250, max: 1_000 }).default(500).describe('How far ahead send slots are booked'),
  PACE_MARGIN_MS: milliseconds({ min: 0, max: 200 })
    .default(10)
    .describe('How unevenly long calls may be on their way before a provider sees more than the rate; 10 ms cost 1 % of it'),
  HEALTH_PROBE_MS: milliseconds({ min: 100 })
    .default(60_000)
    .describe('How often a provider is asked about a number that is held without an end'),
});
export type SenderConfig = z.output<typeof senderConfig>;
