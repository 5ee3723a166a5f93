import { openChunk, type Recipient } from '#contracts/audience-chunk';
import { messageContent, type MessageContent } from '#contracts/content';
import { CHUNK_SIZE, RECIPIENT_HASH_BYTES } from '#contracts/ids';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { BatchedReads } from './batched-reads';

const READ_CONTENT = sqlFile(__dirname, 'read-content.sql');
const READ_CHUNKS = sqlFile(__dirname, 'read-chunks.sql');

export interface LoadedContent {
  audienceId: string;
  content: MessageContent;
  category: string | null;
}

export interface Chunk {
  hashes: Buffer;
  recipients: Recipient[];
}

export type Found = { content: LoadedContent; recipient: Recipient; hash: Buffer };
export type Missing = { missing: 'content_missing' | 'recipient_missing' };

export interface MessageRef {
  scheduleId: string;
  revision: number;
  position: number;
  /** What the occurrence's id says about the recipient. */
  recipientHash: Buffer;
}

export interface MessageSource {
  /** What to send, and to whom. Rejects while PostgreSQL does not answer. */
  find(message: MessageRef): Found | Missing | Promise<Found | Missing>;
}

export interface MessageSourceOptions {
  /** Bytes of chunks kept, as they lie in memory, roughly; 96 MB if absent. */
  chunkBytes?: number;
  /** Contents kept; 5,000 if absent. */
  contents?: number;
}

/**
 * Contents and chunks are immutable once written (a revision has a new number, an audience a new id), so they are kept without an
 * end. A recipient is known by its place and by its hash: both must fit, or a stranger would get the message.
 */
export function openMessageSource(database: Database, options: MessageSourceOptions = {}): MessageSource {
  const contents = new BatchedReads<LoadedContent>({
    bound: options.contents ?? 5_000,
    most: 100,
    read: async (keys) => {
      const asked = keys.map((key) => key.split('/') as [string, string]);
      const rows = await database.rows<{
        schedule_id: string;
        revision: number;
        audience_id: string;
        content: unknown;
        category: string | null;
      }>(READ_CONTENT, [asked.map(([scheduleId]) => scheduleId), asked.map(([, revision]) => Number(revision))]);
      return rows.flatMap(({ schedule_id, revision, audience_id, content, category }) => {
        const parsed = messageContent.safeParse(content);
        // Content that this version can't read is as good as none, and is refused as visibly.
        if (!parsed.success) return [];
        return [
          { key: `${schedule_id}/${revision}`, value: { audienceId: audience_id, content: parsed.data, category }, size: 1 },
        ];
      });
    },
  });
  const chunks = new BatchedReads<Chunk>({
    bound: options.chunkBytes ?? 96 * 1024 * 1024,
    most: 16,
    read: async (keys) => {
      const asked = keys.map((key) => key.split('/') as [string, string]);
      const rows = await database.rows<{ audience_id: string; chunk: number; hashes: Buffer; body: Buffer }>(READ_CHUNKS, [
        asked.map(([audienceId]) => audienceId),
        asked.map(([, chunk]) => Number(chunk)),
      ]);
      return rows.map(({ audience_id, chunk, hashes, body }) => ({
        key: `${audience_id}/${chunk}`,
        value: { hashes, recipients: openChunk(body) },
        // Deflated JSON of chunks grows some eight times, and objects take twice their text.
        size: hashes.length + 16 * body.length,
      }));
    },
  });

  const inChunk = (content: LoadedContent, chunk: Chunk | null, { position, recipientHash }: MessageRef): Found | Missing => {
    const at = (position % CHUNK_SIZE) * RECIPIENT_HASH_BYTES;
    const recipient = chunk?.recipients[position % CHUNK_SIZE];
    if (!chunk || !recipient) return { missing: 'recipient_missing' };
    const hash = chunk.hashes.subarray(at, at + RECIPIENT_HASH_BYTES);
    return hash.equals(recipientHash) ? { content, recipient, hash } : { missing: 'recipient_missing' };
  };
  const withContent = (content: LoadedContent | null, message: MessageRef): Found | Missing | Promise<Found | Missing> => {
    if (!content) return { missing: 'content_missing' };
    const chunk = chunks.get(`${content.audienceId}/${Math.floor(message.position / CHUNK_SIZE)}`);
    return chunk instanceof Promise ? chunk.then((found) => inChunk(content, found, message)) : inChunk(content, chunk, message);
  };
  return {
    find(message) {
      const content = contents.get(`${message.scheduleId}/${message.revision}`);
      return content instanceof Promise ? content.then((found) => withContent(found, message)) : withContent(content, message);
    },
  };
}
