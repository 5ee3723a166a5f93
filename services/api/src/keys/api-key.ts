import { createHash, randomBytes } from 'node:crypto';
import { encodeCrockford } from '#contracts/crockford';

/** What a key may do; closed. `recipients:read` shows whole phone numbers and provider message ids (which hold the number). */
export const SCOPES = [
  'schedules:read',
  'schedules:write',
  'audiences:read',
  'audiences:write',
  'messages:read',
  'recipients:read',
  'numbers:read',
  'numbers:write',
  'keys:write',
] as const;
export type Scope = (typeof SCOPES)[number];

const SECRET_BYTES = 25;
const SECRET_LENGTH = 40;
const CHECK_LENGTH = 8;
const KEY = new RegExp(`^punctual_(test|live)_([0-9a-hjkmnp-tv-z]{${SECRET_LENGTH}})([0-9a-hjkmnp-tv-z]{${CHECK_LENGTH}})$`);

/** `punctual_<mode>_` + 200 random bits + 40 bits of checksum, so that scanners recognise a leaked key and typos cost no query. */
export function newApiKey(mode: 'test' | 'live'): string {
  const secret = encodeCrockford(randomBytes(SECRET_BYTES));
  return `punctual_${mode}_${secret}${checksum(mode, secret)}`;
}

export function isApiKey(text: string): boolean {
  const match = KEY.exec(text);
  return match !== null && checksum(match[1]!, match[2]!) === match[3];
}

function checksum(mode: string, secret: string): string {
  const hash = createHash('sha256').update(`punctual key ${mode} ${secret}`).digest();
  return encodeCrockford(hash.subarray(0, 5));
}

/** A plain hash is enough for 200 random bits; slow hashes are for passwords. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** Enough to tell keys apart in a list. */
export function keyHint(key: string): string {
  return `${key.slice(0, 'punctual_test_'.length + 4)}…${key.slice(-4)}`;
}
