import type { Database, Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { ReadBatch, ReadRecord } from './items';

const KNOW = sqlFile(__dirname, 'know-partition.sql');
const LOCK = sqlFile(__dirname, 'lock-offsets.sql');
const MOVE = sqlFile(__dirname, 'move-offsets.sql');

/** How far each partition is projected. Locked first and moved last in every transaction of the projection. */
export class ProjectorOffsets {
  private readonly known = new Set<string>();

  async know(database: Database, batches: ReadBatch[]): Promise<void> {
    for (const { topic, partition } of batches) {
      const name = `${topic}/${partition}`;
      if (this.known.has(name)) continue;
      await database.rows(KNOW, [topic, partition]);
      this.known.add(name);
    }
  }

  /** The records of each batch that nobody has projected yet; each partition may come once. */
  async lock(transaction: Queryable, batches: ReadBatch[]): Promise<ReadBatch[]> {
    const rows = await transaction.rows<{ topic: string; partition: number; next_offset: string; newest_at_ms: number | null }>(
      LOCK,
      [batches.map(({ topic }) => topic), batches.map(({ partition }) => partition)],
    );
    const positions = new Map(rows.map((row) => [`${row.topic}/${row.partition}`, row]));
    return batches.map((batch) => {
      const position = positions.get(`${batch.topic}/${batch.partition}`);
      if (!position)
        throw new Error(`the position of ${batch.topic}/${batch.partition} was deleted while it was projected; restart receipts`);
      const next = BigInt(position.next_offset);
      const newestMs = position.newest_at_ms ?? -Infinity;
      // A topic that was deleted and created anew starts at 0 again: what is later than all we saw is news all the same.
      return { ...batch, records: batch.records.filter(({ offset, timestampMs }) => offset >= next || timestampMs > newestMs) };
    });
  }

  async move(transaction: Queryable, batches: ReadBatch[]): Promise<void> {
    const moved = batches.filter(({ records }) => records.length > 0);
    if (moved.length === 0) return;
    await transaction.rows(MOVE, [
      moved.map(({ topic }) => topic),
      moved.map(({ partition }) => partition),
      moved.map(({ records }) => String(records.at(-1)!.offset + 1n)),
      moved.map(({ records }) => newest(records)),
    ]);
  }
}

function newest(records: ReadRecord[]): number {
  return records.reduce((latest, { timestampMs }) => Math.max(latest, timestampMs), 0);
}
