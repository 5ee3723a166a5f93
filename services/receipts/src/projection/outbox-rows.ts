import { partitionFor } from '#contracts/murmur2';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { Outgoing } from './outgoing';

const WRITE = sqlFile(__dirname, 'write-outbox.sql');

/** Real partition counts of the topics that this service tells. */
export type Partitions = Record<Outgoing['topic'], number>;

export async function writeOutbox(transaction: Queryable, outgoing: Outgoing[], partitions: Partitions): Promise<void> {
  if (outgoing.length === 0) return;
  await transaction.rows(WRITE, [
    outgoing.map(({ topic }) => topic),
    outgoing.map(({ topic, key }) => partitionFor(key, partitions[topic])),
    outgoing.map(({ key }) => key),
    outgoing.map(({ value }) => value),
    outgoing.map(({ headers }) => headers).join('\n'),
  ]);
}
