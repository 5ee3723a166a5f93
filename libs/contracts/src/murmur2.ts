/** The hash of Kafka's default partitioner (murmur2, seed 0x9747b28c), so that other clients find our keys where they expect them. */
export function murmur2(data: Uint8Array): number {
  const length = data.length;
  const M = 0x5bd1e995;
  let h = 0x9747b28c ^ length;
  const whole = length >> 2;
  for (let i = 0; i < whole; i++) {
    const at = i << 2;
    let k = data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24);
    k = Math.imul(k, M);
    k ^= k >>> 24;
    k = Math.imul(k, M);
    h = Math.imul(h, M) ^ k;
  }
  const rest = whole << 2;
  const left = length & 3;
  if (left > 2) h ^= data[rest + 2]! << 16;
  if (left > 1) h ^= data[rest + 1]! << 8;
  if (left > 0) {
    h ^= data[rest]!;
    h = Math.imul(h, M);
  }
  h ^= h >>> 13;
  h = Math.imul(h, M);
  h ^= h >>> 15;
  return h | 0;
}

export function partitionFor(key: Uint8Array | string, partitions: number): number {
  const bytes = typeof key === 'string' ? Buffer.from(key, 'utf8') : key;
  return (murmur2(bytes) & 0x7fffffff) % partitions;
}
