import { randomBytes } from 'node:crypto';
import { topicSpecs } from '#contracts/topics';
import { kafkaClient } from '#runtime/kafka/connection';
import { openAdmin } from '#runtime/kafka/open-admin';
import { cloneDatabase, dropDatabase } from './template-database';

/** The roles that the migrations create. */
export type DatabaseRole = 'punctual_api' | 'punctual_scheduler' | 'punctual_sender' | 'punctual_receipts' | 'punctual_migrator';

export interface TestDatabase {
  /** The superuser's. */
  adminUrl: string;
  urlFor(role: DatabaseRole): string;
  drop(): Promise<void>;
}

export interface TestTopics {
  names: string[];
  drop(): Promise<void>;
}

/** A database of its own for one test file: a copy of the migrated template, or an empty one. */
export async function createTestDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const server = serverAddress('DATABASE_URL');
  const name = `punctual_test_${randomBytes(8).toString('hex')}`;
  const adminUrl = await cloneDatabase(server, name, { migrated: options.migrated ?? true });
  return {
    adminUrl,
    urlFor: (role) => {
      const url = new URL(adminUrl);
      url.username = role;
      url.password = '';
      return url.href;
    },
    drop: () => dropDatabase(server, name),
  };
}

/** For topic names, consumer groups and Redis keys: `<prefix>executions` belongs to one test file only. */
export function uniquePrefix(): string {
  return `t${randomBytes(6).toString('hex')}.`;
}

/** All topics of the contracts under the prefix, dead-letter topics included, with the real partition counts. */
export async function createTopics(prefix: string): Promise<TestTopics> {
  const topics = topicSpecs(prefix);
  const names = topics.map(({ name }) => name);
  const admin = await openAdmin({ clientId: 'punctual-tests', brokers: serverAddress('KAFKA_BROKERS').split(',') });
  try {
    await admin.ensureTopics(topics);
  } finally {
    await admin.close();
  }
  return { names, drop: () => withAdmin((admin) => admin.deleteTopics({ topics: names })) };
}

type Admin = ReturnType<ReturnType<typeof kafkaClient>['admin']>;

/** The client's own admin: the services' port deletes no topics. */
export async function withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafkaClient({ clientId: 'punctual-tests', brokers: serverAddress('KAFKA_BROKERS').split(',') }).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

export function serverAddress(variable: 'KAFKA_BROKERS' | 'DATABASE_URL' | 'REDIS_URL'): string {
  const address = process.env[variable];
  if (address === undefined || address === '') {
    throw new Error(
      `${variable} is not set. Tests that need servers run in the projects "integration" and "e2e", which start them: ` +
        `name the file *.integration.test.ts or put it into e2e/.`,
    );
  }
  return address;
}
