/** CRC-64-AVRO (Avro specification, "Schema Fingerprints"): the Rabin fingerprint of a schema's parsing canonical form. */
const EMPTY = 0xc15d213aa4d7a795n;
const TABLE: bigint[] = [];
for (let byte = 0n; byte < 256n; byte++) {
  let fingerprint = byte;
  for (let bit = 0; bit < 8; bit++) fingerprint = (fingerprint >> 1n) ^ (EMPTY & -(fingerprint & 1n));
  TABLE.push(BigInt.asUintN(64, fingerprint));
}

export function crc64Avro(text: string): bigint {
  let fingerprint = EMPTY;
  for (const byte of Buffer.from(text, 'utf8')) {
    fingerprint = (fingerprint >> 8n) ^ TABLE[Number((fingerprint ^ BigInt(byte)) & 0xffn)]!;
  }
  return fingerprint;
}
