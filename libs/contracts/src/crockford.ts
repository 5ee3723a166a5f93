/** Crockford base32, lower case, no padding. Reading is case-insensitive and takes o for 0, i and l for 1. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const VALUES = new Int8Array(128).fill(-1);
for (let value = 0; value < 32; value++) {
  VALUES[ALPHABET.charCodeAt(value)] = value;
  VALUES[ALPHABET.toUpperCase().charCodeAt(value)] = value;
}
for (const [alias, value] of [
  ['o', 0],
  ['O', 0],
  ['i', 1],
  ['I', 1],
  ['l', 1],
  ['L', 1],
] as const) {
  VALUES[alias.charCodeAt(0)] = value;
}

/** `ceil(bytes * 8 / 5)` characters; the last one is filled with zero bits. */
export function encodeCrockford(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(held >> bits) & 31];
    }
    held &= (1 << bits) - 1;
  }
  if (bits > 0) text += ALPHABET[(held << (5 - bits)) & 31];
  return text;
}

/** Exactly `size` bytes, or null when the text is not their encoding (length, alphabet, or filling bits that are not zero). */
export function decodeCrockford(text: string, size: number): Buffer | null {
  if (text.length !== Math.ceil((size * 8) / 5)) return null;
  const bytes = Buffer.allocUnsafe(size);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    const value = code < 128 ? VALUES[code]! : -1;
    if (value < 0) return null;
    held = (held << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (held >> bits) & 255;
      held &= (1 << bits) - 1;
    }
  }
  return held === 0 ? bytes : null;
}
