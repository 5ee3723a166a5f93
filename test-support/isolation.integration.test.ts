import { Client } from 'pg';
import { topicSpecs } from '#contracts/topics';
import { waitUntil } from '#runtime/wait-until';
import { createTestDatabase, createTopics, uniquePrefix, withAdmin, type TestDatabase } from './isolation';

async function query(url: string, text: string): Promise<Array<Record<string, unknown>>> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

describe('a database of a test file', () => {
  it('is its own: what one writes the other does not see, and it is gone when dropped', async () => {
    const [one, other] = await Promise.all([createTestDatabase({ migrated: false }), createTestDatabase({ migrated: false })]);
    await query(one.adminUrl, 'CREATE TABLE only_here (id int)');
    await expect(query(other.adminUrl, 'SELECT * FROM only_here')).rejects.toMatchObject({ code: '42P01' });
    await expect(query(one.adminUrl, 'SELECT * FROM only_here')).resolves.toEqual([]);
    await Promise.all([one.drop(), other.drop()]);
    await expect(query(one.adminUrl, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' });
  });
});

describe('a migrated database', () => {
  it('is a copy of one template, however many files ask for it at once, and each service signs in with its role', async () => {
    const databases = await Promise.all(Array.from({ length: 4 }, () => createTestDatabase()));
    const [{ urlFor, adminUrl }] = databases as [TestDatabase];
    await expect(query(urlFor('punctual_sender'), 'SELECT current_user AS role')).resolves.toEqual([{ role: 'punctual_sender' }]);
    const [{ version }] = (await query(urlFor('punctual_api'), 'SELECT version FROM punctual.schema_version')) as [
      { version: number },
    ];
    expect(version).toBeGreaterThan(0);
    const [{ count }] = (await query(
      adminUrl,
      `SELECT count(*)::int FROM pg_database WHERE datname LIKE 'punctual\\_template\\_%\\_draft'`,
    )) as [{ count: number }];
    expect(count).toBe(0);
    await Promise.all(databases.map((database) => database.drop()));
  });
});

describe('topics of a test file', () => {
  it('are all topics of the contracts under its own prefix, until they are dropped', async () => {
    const prefix = uniquePrefix();
    const topics = await createTopics(prefix);
    await withAdmin(async (admin) => {
      const { topics: found } = await admin.fetchTopicMetadata({ topics: topics.names });
      const partitions = Object.fromEntries(found.map((topic) => [topic.name, topic.partitions.length]));
      expect(partitions).toEqual(Object.fromEntries(topicSpecs(prefix).map(({ name, partitions: count }) => [name, count])));
      await topics.drop();
      await waitUntil('the topics are gone', async () => !(await admin.listTopics()).some((name) => name.startsWith(prefix)));
    });
  });
});
