import { describeError } from '../describe-error';
import type { OutRecord } from '../kafka/port';

export interface OutboxRow {
  id: string;
  lane: number;
  topic: string;
  key: Buffer;
  value: Buffer | null;
  draft: unknown;
  headers: Record<string, string> | null;
}

export interface Encoding {
  /** Turns what a SQL function wrote into bytes. Throws if it can't. */
  encode(topic: string, draft: unknown): { value: Buffer; headers?: Record<string, string> };
  /** For rows whose lane is negative: the partition of the real topic. */
  partitionOf(topic: string, key: Buffer): number;
  /** The topic's full name. */
  topicName(topic: string): string;
}

export interface PartitionBatch {
  topic: string;
  partition: number;
  ids: string[];
  records: OutRecord[];
}

export interface EncodedRows {
  batches: PartitionBatch[];
  poison: { id: string; reason: string }[];
}

/** A broker takes no request above 1 MB; such a row would be refused for ever. */
const LARGEST_VALUE = 950_000;

/** Rows of one lane, in order of their ids, as one batch per topic-partition. */
export function encodeRows(rows: OutboxRow[], encoding: Encoding): EncodedRows {
  const batches = new Map<string, PartitionBatch>();
  const poison: EncodedRows['poison'] = [];
  for (const row of rows) {
    try {
      const encoded = row.value === null ? encoding.encode(row.topic, row.draft) : { value: row.value };
      if (encoded.value.length > LARGEST_VALUE)
        throw new RangeError(`the value has ${Math.round(encoded.value.length / 1000)} kB; Kafka takes ${LARGEST_VALUE / 1000}`);
      const partition = row.lane < 0 ? encoding.partitionOf(row.topic, row.key) : row.lane;
      const topic = encoding.topicName(row.topic);
      const name = `${topic}/${partition}`;
      let batch = batches.get(name);
      if (!batch) batches.set(name, (batch = { topic, partition, ids: [], records: [] }));
      const headers = row.headers || encoded.headers ? { ...row.headers, ...encoded.headers } : undefined;
      batch.ids.push(row.id);
      batch.records.push({ key: row.key, value: encoded.value, headers });
    } catch (error) {
      const { code, type, message } = describeError(error);
      poison.push({ id: row.id, reason: `${code ?? type}: ${message}`.slice(0, 500) });
    }
  }
  return { batches: [...batches.values()], poison };
}
