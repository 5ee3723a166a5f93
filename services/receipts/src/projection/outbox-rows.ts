import { partitionFor } from '#contracts/murmur2';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { Outgoing } from './outgoing';

const WRITE = sqlFile(__dirname, 'write-outbox.sql');

/** Real partition counts of the topics that this service tells. */
export type Partitions = Record<Outgoing['topic'], number>;

export async function writeOutbox(transaction: Queryable, outgoing: Outgoing[], partitions: Partitions): Promise<void> {
  if (outgoing.length === 0) return;
  const bytes: Buffer[] = [];
  const lines: string[] = [];
  let start = 1;
  for (const { topic, key, value, headers } of outgoing) {
    bytes.push(key, value);
    lines.push(`${topic}\t${partitionFor(key, partitions[topic])}\t${start}\t${key.length}\t${value.length}\t${headers}`);
    start += key.length + value.length;
  }
  await transaction.rows(WRITE, [Buffer.concat(bytes), lines.join('\n')]);
}
