import { createHmac, timingSafeEqual } from 'node:crypto';

const FORM = /^sha256=([0-9a-f]{64})$/i;

/**
 * Meta's `X-Hub-Signature-256`: HMAC-SHA256 under the app secret, over the bytes as they came. Meta writes non-ASCII as \uXXXX,
 * so a parsed and written again body has another signature.
 */
export function hasValidSignature(secret: string, body: Uint8Array, header: unknown): boolean {
  const match = typeof header === 'string' ? FORM.exec(header) : null;
  if (!match) return false;
  return timingSafeEqual(Buffer.from(match[1]!, 'hex'), createHmac('sha256', secret).update(body).digest());
}

/** Equal in a time that tells nothing about how much of it was right. */
export function isSameSecret(expected: string, given: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'same-secret').update(text).digest();
  return timingSafeEqual(digest(expected), digest(given));
}

/** The challenge to echo, or null where Meta (or somebody else) must be refused: 403. */
export function answerVerification(verifyToken: string, query: Record<string, unknown>): string | null {
  const { 'hub.mode': mode, 'hub.challenge': challenge, 'hub.verify_token': given } = query;
  if (mode !== 'subscribe' || typeof given !== 'string' || typeof challenge !== 'string') return null;
  if (challenge === '' || challenge.length > 256) return null;
  return isSameSecret(verifyToken, given) ? challenge : null;
}
