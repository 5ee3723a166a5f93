import fc from 'fast-check';
import { inspect } from 'node:util';
import { z } from 'zod';
import {
  ConfigError,
  Secret,
  configTable,
  describeConfig,
  flag,
  integer,
  list,
  loadConfig,
  port,
  secret,
  secretUrl,
  url,
} from './config';

const schema = z.object({
  HTTP_PORT: port().default(8080).describe('Where the API listens'),
  WORKERS: integer({ min: 1, max: 16 }).default(4).describe('Requests at once'),
  KAFKA_BROKERS: list().describe('Where Kafka is'),
  CALLBACK_URL: url('https').optional(),
  DATABASE_URL: secretUrl('postgres', 'postgresql').describe('Where PostgreSQL is'),
  API_KEY: secret({ min: 8 }).describe('Signs things'),
  STRICT: flag().default(false),
  MODE: z.enum(['live', 'simulated']).default('live'),
});

const complete = { KAFKA_BROKERS: 'a:1, b:2,', DATABASE_URL: 'postgres://u:hunter2@h/db', API_KEY: 'abcdefgh' };

function problemsOf(env: Record<string, string>): string {
  try {
    loadConfig(schema, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

describe('loadConfig', () => {
  it('reads values, defaults and lists', () => {
    const config = loadConfig(schema, { ...complete, WORKERS: '7', STRICT: 'true' });
    expect(config.WORKERS).toBe(7);
    expect(config.HTTP_PORT).toBe(8080);
    expect(config.STRICT).toBe(true);
    expect(config.KAFKA_BROKERS).toEqual(['a:1', 'b:2']);
    expect(config.CALLBACK_URL).toBeUndefined();
    expect(config.API_KEY.reveal()).toBe('abcdefgh');
  });

  it('names every problem at once, with what is allowed and what was given', () => {
    const message = problemsOf({
      WORKERS: '17',
      CALLBACK_URL: 'http://x',
      MODE: 'fake',
      DATABASE_URL: 'mysql://u:hunter2@h',
      API_KEY: 'short1',
    });
    expect(message).toContain('WORKERS must be a whole number from 1 to 16; given: "17"');
    expect(message).toContain('KAFKA_BROKERS must be a comma-separated list with at least one item; it is not set');
    expect(message).toContain('CALLBACK_URL must be a URL that starts with https://; given: "http://x"');
    expect(message).toContain('MODE must be one of live, simulated; given: "fake"');
    expect(message).toContain('API_KEY must be a secret of at least 8 characters; given: a value that is not shown');
    expect(message).not.toContain('short1');
    expect(message).not.toContain('hunter2');
  });

  it('takes a variable set to nothing as not set', () => {
    expect(loadConfig(schema, { ...complete, WORKERS: ' ' }).WORKERS).toBe(4);
    expect(problemsOf({ ...complete, API_KEY: '' })).toContain('API_KEY must be');
  });

  it('reports rules across fields', () => {
    const both = z
      .object({ MIN: integer().default(1), MAX: integer().default(2) })
      .refine((c) => c.MIN <= c.MAX, 'MIN must not be above MAX');
    expect(() => loadConfig(both, { MIN: '3' })).toThrow('MIN must not be above MAX');
  });
});

describe('Secret', () => {
  it('shows itself on reveal only', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 9 }), (text) => {
        const hidden = new Secret(text);
        const shown = [
          `${hidden}`,
          String(hidden),
          JSON.stringify({ hidden }),
          inspect({ hidden }, { showHidden: true, depth: 9 }),
          hidden + '',
        ];
        for (const view of shown) expect(view.includes(text)).toBe(false);
        expect(hidden.reveal()).toBe(text);
      }),
    );
  });
});

describe('describeConfig', () => {
  it('lists each variable with meaning, rule and default', () => {
    expect(describeConfig(schema)).toContainEqual({
      variable: 'WORKERS',
      allowed: 'a whole number from 1 to 16',
      default: '4',
      required: false,
      secret: false,
      meaning: 'Requests at once',
    });
    const table = configTable(schema);
    expect(table).toContain(
      '| `KAFKA_BROKERS` | Where Kafka is | a comma-separated list with at least one item | **must be set** |',
    );
    expect(table).toContain('| `HTTP_PORT` | Where the API listens | a port from 0 to 65535; 0 takes a free one | 8080 |');
  });
});
