const LONGEST = 1_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const IPV4 = /^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/;
// Credentials in a URL, what follows "Bearer", anything long that mixes letters and digits, and whatever could be dialled:
// at least six digits, however they are spaced.
const SENSITIVE =
  /(?<=:\/\/)[^\s/@]+@|\bBearer\s+\S+|\b(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_-]{24,}\b|\+?\(?\p{Nd}(?:[\s().\-/\u00a0\u2010-\u2015]{0,3}\p{Nd}){5,}/giu;

/** Free text without phone numbers, tokens and credentials. Addresses and UUIDs stay: they are what operators look for. */
export function scrub(text: string): string {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return short.replace(SENSITIVE, (found) => {
    if (UUID.test(found) || IPV4.test(found)) return found;
    if (found.endsWith('@')) return '[credentials]@';
    return /\p{L}/u.test(found) ? '[token]' : '[digits]';
  });
}
