import { createHash, createHmac, randomBytes } from 'node:crypto';
import { decodeCrockford, encodeCrockford } from './crockford';

/**
 * Public ids are a prefix and base32; tables hold the bytes. Ids of schedules, audiences and the like are UUID version 7,
 * those of runs and messages are derived, so that whoever computes them gets the same.
 */
const SIZES = { sch: 16, aud: 16, num: 16, ten: 16, key: 16, cbe: 16, evt: 16, run: 12, msg: 20 } as const;
export type IdKind = keyof typeof SIZES;

export const RUN_ID_BYTES = SIZES.run;
export const OCCURRENCE_ID_BYTES = SIZES.msg;
export const RECIPIENT_HASH_BYTES = 8;
/** Recipients in every sealed chunk but the last of an audience. A position in the audience is chunk * 500 + index. */
export const CHUNK_SIZE = 500;

export function formatId(kind: IdKind, bytes: Uint8Array): string {
  if (bytes.length !== SIZES[kind]) throw new RangeError(`a ${kind} id has ${SIZES[kind]} bytes, not ${bytes.length}`);
  return `${kind}_${encodeCrockford(bytes)}`;
}

/** The bytes of an id as customers write it (any case), or null when it is not one of this kind. */
export function parseId(kind: IdKind, text: string): Buffer | null {
  if (text.length < 5 || text.slice(0, 4).toLowerCase() !== `${kind}_`) return null;
  return decodeCrockford(text.slice(4), SIZES[kind]);
}

/** UUID version 7 (RFC 9562): 48 bits of milliseconds, then random; ordered by time. */
export function newUuid(nowMs: number): Buffer {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes;
}

export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function uuidBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
  if (bytes.length !== 16) throw new RangeError('not a UUID');
  return bytes;
}

const DAY_MS = 86_400_000;

/** The day that an id is filed under: days since the epoch. Creation day for `once`, so that a revision never moves a run. */
export function bucketOf(instantMs: number): number {
  return Math.floor(instantMs / DAY_MS);
}

/** 4 bytes of bucket, then 8 bytes of SHA-256 over the schedule's bytes and the slot. */
export function runId(bucket: number, scheduleId: Uint8Array, slot: string): Buffer {
  const id = Buffer.allocUnsafe(RUN_ID_BYTES);
  id.writeUInt32BE(bucket, 0);
  createHash('sha256').update(scheduleId).update(slot, 'utf8').digest().copy(id, 4, 0, 8);
  return id;
}

/**
 * 8 bytes that stand for a recipient. Keyed, because the numbers of a country can be tried one by one in minutes;
 * the key never rotates, because the id of a message must not change.
 */
export function recipientHash(idKey: Uint8Array, recipientKey: string): Buffer {
  return createHmac('sha256', idKey).update(recipientKey, 'utf8').digest().subarray(0, RECIPIENT_HASH_BYTES);
}

export function occurrenceId(run: Uint8Array, hash: Uint8Array): Buffer {
  const id = Buffer.allocUnsafe(OCCURRENCE_ID_BYTES);
  id.set(run, 0);
  id.set(hash, RUN_ID_BYTES);
  return id;
}

export function runOf(occurrence: Uint8Array): Buffer {
  return Buffer.from(occurrence.subarray(0, RUN_ID_BYTES));
}

export function recipientHashOf(occurrence: Uint8Array): Buffer {
  return Buffer.from(occurrence.subarray(RUN_ID_BYTES, OCCURRENCE_ID_BYTES));
}

/** The same parts give the same event id: a fact that is told twice can be recognised. */
export function derivedEventId(...parts: Array<string | Uint8Array | number>): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(typeof part === 'number' ? `${part}|` : part).update('\u0000');
  return `evt_${encodeCrockford(hash.digest().subarray(0, 16))}`;
}
