import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { PunctualError } from './errors';
import type { Secret } from './secret';

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What was sealed can't be opened: another key, another owner (`boundTo`), or changed bytes. */
export class UnsealError extends PunctualError {
  constructor(cause?: unknown) {
    super(
      'unseal_failed',
      'Sealed bytes can not be opened: wrong key, wrong owner, or they were changed. Check that all services have the same key.',
      {
        cause,
      },
    );
  }
}

/**
 * AES-256-GCM under a key of 32 bytes. `boundTo` (the owner's id, say) is authenticated with it, so that a row's sealed bytes
 * are worthless in another row. Layout: format byte, 12 bytes nonce, 16 bytes tag, ciphertext.
 */
export function seal(key: Buffer, plain: string | Buffer, boundTo: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from(boundTo));
  const body = Buffer.concat([cipher.update(plain as Buffer), cipher.final()]);
  return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), body]);
}

export function unseal(key: Buffer, sealed: Uint8Array, boundTo: string): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES || bytes[0] !== FORMAT) throw new UnsealError();
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 1 + NONCE_BYTES));
  decipher.setAAD(Buffer.from(boundTo));
  decipher.setAuthTag(bytes.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new UnsealError(error);
  }
}

/** The 32 bytes of a key that is configured as base64. Throws, without showing it, if it is anything else. */
export function keyFrom(secret: Secret): Buffer {
  const key = Buffer.from(secret.reveal(), 'base64');
  if (key.length !== 32) throw new PunctualError('key_invalid', 'A key must be 32 bytes in base64 (`openssl rand -base64 32`).');
  return key;
}
