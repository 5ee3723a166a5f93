import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeCrockford, encodeCrockford } from './crockford';
import { OCCURRENCE_ID_BYTES } from './ids';

/**
 * What we give a provider to send back with every status: it names the attempt by itself, so evidence finds its message
 * even if the sender died before it recorded anything. `p1.` + base32 of 20 bytes occurrence id, 2 bytes attempt,
 * 6 bytes MAC (HMAC-SHA256, cut). 48 characters, no personal data; WhatsApp takes 512.
 */
const PREFIX = 'p1.';
const MAC_BYTES = 6;
const BODY_BYTES = OCCURRENCE_ID_BYTES + 2;

export interface AttemptRef {
  occurrenceId: Buffer;
  attempt: number;
}

function mac(tokenKey: Uint8Array, body: Uint8Array): Buffer {
  return createHmac('sha256', tokenKey).update(body).digest().subarray(0, MAC_BYTES);
}

/** `attempt` counts from 1 and is at most 65,535. */
export function attemptToken(tokenKey: Uint8Array, occurrenceId: Uint8Array, attempt: number): string {
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > 0xffff)
    throw new RangeError(`attempt ${attempt} is not in 1..65535`);
  const body = Buffer.allocUnsafe(BODY_BYTES);
  body.set(occurrenceId, 0);
  body.writeUInt16BE(attempt, OCCURRENCE_ID_BYTES);
  return PREFIX + encodeCrockford(Buffer.concat([body, mac(tokenKey, body)]));
}

/** Null for anything that we did not issue. */
export function readAttemptToken(tokenKey: Uint8Array, token: string): AttemptRef | null {
  if (!token.startsWith(PREFIX)) return null;
  const bytes = decodeCrockford(token.slice(PREFIX.length), BODY_BYTES + MAC_BYTES);
  if (!bytes) return null;
  const body = bytes.subarray(0, BODY_BYTES);
  if (!timingSafeEqual(bytes.subarray(BODY_BYTES), mac(tokenKey, body))) return null;
  return { occurrenceId: Buffer.from(body.subarray(0, OCCURRENCE_ID_BYTES)), attempt: body.readUInt16BE(OCCURRENCE_ID_BYTES) };
}
