import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Schema, Type } from 'avsc';
import { crc64Avro } from './crc64-avro';

/** One released version of one event's schema. The files are append-only: a change is a new version beside the old. */
export interface SchemaVersion {
  name: string;
  version: number;
  file: string;
  type: Type;
  /** `C3 01` and the fingerprint, little-endian: what stands before every value. */
  header: Buffer;
}

// In the compiled tree the schemas lie beside the compiled sources; the build copies them there.
const FOLDER = join(__dirname, '..', 'schemas');

export function parseSchema(text: string): Type {
  // Fresh options for each: a registry shared by two versions of one name throws "duplicate type name".
  return Type.forSchema(JSON.parse(text) as Schema, { registry: {}, wrapUnions: 'never' });
}

export function headerOf(type: Type): Buffer {
  const header = Buffer.from([0xc3, 0x01, 0, 0, 0, 0, 0, 0, 0, 0]);
  header.writeBigUInt64LE(crc64Avro(JSON.stringify(type.schema())), 2);
  return header;
}

export function loadSchemas(folder = FOLDER): SchemaVersion[] {
  const versions = readdirSync(folder).flatMap((file) => {
    const match = /^(\w+)\.v(\d+)\.avsc$/.exec(file);
    if (!match) return [];
    const type = parseSchema(readFileSync(join(folder, file), 'utf8'));
    return [{ name: match[1]!, version: Number(match[2]), file, type, header: headerOf(type) }];
  });
  return versions.sort((a, b) => a.name.localeCompare(b.name) || a.version - b.version);
}
