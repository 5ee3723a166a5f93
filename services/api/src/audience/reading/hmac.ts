import { createHash } from 'node:crypto';

/**
 * HMAC-SHA-256 (RFC 2104, FIPS 180-4) for many short inputs under one key: without an object or a call out of JavaScript it takes a
 * third of the time that node:crypto takes for the HMAC of a phone number (1.5 µs against 4.6 µs). Tested against node:crypto.
 */
const K = new Int32Array(64);
const START = new Int32Array(8);

const primes = (function* () {
  for (let n = 2; ; n++) {
    let prime = true;
    for (let d = 2; d * d <= n && prime; d++) prime = n % d !== 0;
    if (prime) yield n;
  }
})();
for (let at = 0; at < 64; at++) {
  const prime = primes.next().value as number;
  K[at] = fraction(Math.cbrt(prime));
  if (at < 8) START[at] = fraction(Math.sqrt(prime));
}

/** The first 32 bits behind the point; doubles are exact enough for that, up to the 64th prime. */
function fraction(root: number): number {
  return ((root - Math.floor(root)) * 0x1_0000_0000) | 0;
}

const W = new Int32Array(64);
const BLOCK = new Uint8Array(128);

function compress(state: Int32Array, bytes: Uint8Array, from: number): void {
  for (let t = 0, at = from; t < 16; t++, at += 4) {
    W[t] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }
  for (let t = 16; t < 64; t++) {
    const x = W[t - 15]!;
    const y = W[t - 2]!;
    const low = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const high = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[t] = (W[t - 16]! + low + W[t - 7]! + high) | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let t = 0; t < 64; t++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const one = (h + s1 + ((e & f) ^ (~e & g)) + K[t]! + W[t]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0] = (state[0]! + a) | 0;
  state[1] = (state[1]! + b) | 0;
  state[2] = (state[2]! + c) | 0;
  state[3] = (state[3]! + d) | 0;
  state[4] = (state[4]! + e) | 0;
  state[5] = (state[5]! + f) | 0;
  state[6] = (state[6]! + g) | 0;
  state[7] = (state[7]! + h) | 0;
}

/** Goes on from `state`, which `before` bytes (whole blocks) led to, to the end of the message. */
function finish(state: Int32Array, bytes: Uint8Array, from: number, to: number, before: number): void {
  let at = from;
  for (; to - at >= 64; at += 64) compress(state, bytes, at);
  const rest = to - at;
  const padded = rest < 56 ? 64 : 128;
  for (let i = 0; i < rest; i++) BLOCK[i] = bytes[at + i]!;
  BLOCK[rest] = 0x80;
  BLOCK.fill(0, rest + 1, padded);
  const bits = (before + to - from) * 8;
  BLOCK[padded - 5] = Math.floor(bits / 0x1_0000_0000);
  BLOCK[padded - 4] = bits >>> 24;
  BLOCK[padded - 3] = bits >>> 16;
  BLOCK[padded - 2] = bits >>> 8;
  BLOCK[padded - 1] = bits;
  compress(state, BLOCK, 0);
  if (padded === 128) compress(state, BLOCK, 64);
}

const state = new Int32Array(8);

/** The two blocks that depend on nothing but the key are hashed once. */
export class Hmac {
  private readonly inner = START.slice();
  private readonly outer = START.slice();
  private readonly digest = new Uint8Array(32);

  constructor(key: Uint8Array) {
    const padded = new Uint8Array(64);
    padded.set(key.length > 64 ? createHash('sha256').update(key).digest() : key);
    compress(
      this.inner,
      padded.map((byte) => byte ^ 0x36),
      0,
    );
    compress(
      this.outer,
      padded.map((byte) => byte ^ 0x5c),
      0,
    );
  }

  /** Writes the first `words` 32-bit words of the HMAC of bytes[from..to). */
  sign(bytes: Uint8Array, from: number, to: number, into: Uint8Array, at: number, words: number): void {
    state.set(this.inner);
    finish(state, bytes, from, to, 64);
    write(this.digest, 0, 8);
    state.set(this.outer);
    finish(state, this.digest, 0, 32, 64);
    write(into, at, words);
  }
}

function write(into: Uint8Array, at: number, words: number): void {
  for (let word = 0; word < words; word++) {
    const value = state[word]!;
    into[at + word * 4] = value >>> 24;
    into[at + word * 4 + 1] = value >>> 16;
    into[at + word * 4 + 2] = value >>> 8;
    into[at + word * 4 + 3] = value;
  }
}
