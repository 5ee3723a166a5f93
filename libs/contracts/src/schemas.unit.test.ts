import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Schema } from 'avsc';
import { Codec, CodecError } from './codec';
import { headerOf, loadSchemas, parseSchema, type SchemaVersion } from './schemas';
import { TOPICS } from './topics';

const schemas = loadSchemas();
const FOLDER = join(__dirname, '..');

interface Golden {
  schemaSha256: string;
  hex: string;
  event: unknown;
}
const golden = ({ name, version }: SchemaVersion): Golden =>
  JSON.parse(readFileSync(join(FOLDER, 'golden', `${name}.v${version}.json`), 'utf8')) as Golden;

const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, inner: unknown) => {
      const buffer = inner as { type?: string; data?: number[] } | null;
      return buffer?.type === 'Buffer' ? { hex: Buffer.from(buffer.data!).toString('hex') } : inner;
    }),
  );

function incompatibilities(versions: SchemaVersion[]): string[] {
  return versions.flatMap((writer) =>
    versions
      .filter((reader) => reader.name === writer.name)
      .flatMap((reader) => {
        try {
          reader.type.createResolver(writer.type);
          return [];
        } catch (error) {
          return [`${reader.file} can't read ${writer.file}: ${(error as Error).message}`];
        }
      }),
  );
}

function enumsOf(schema: Schema): Array<{ name: string; default?: string }> {
  if (Array.isArray(schema)) return schema.flatMap(enumsOf);
  if (typeof schema !== 'object' || schema === null) return [];
  const { type, fields, items, values } = schema as {
    type: unknown;
    name: string;
    fields?: Array<{ type: Schema }>;
    items?: Schema;
    values?: Schema;
  };
  if (type === 'enum') return [schema as { name: string; default?: string }];
  return [
    ...(fields ?? []).flatMap((field) => enumsOf(field.type)),
    ...(items ? enumsOf(items) : []),
    ...(values ? enumsOf(values) : []),
    ...(typeof type === 'object' ? enumsOf(type as Schema) : []),
  ];
}

describe('event schemas', () => {
  it('belong to exactly one topic each', () => {
    const named = Object.values(TOPICS).flatMap((topic): string[] => [...topic.events]);
    expect([...named].sort()).toEqual([...new Set(schemas.map((schema) => schema.name))].sort());
  });

  it('read every version with every other, both ways', () => {
    expect(incompatibilities(schemas)).toEqual([]);
  });

  it('would be caught when a version can not be read', () => {
    const type = parseSchema(
      JSON.stringify({
        type: 'record',
        name: 'RunReleased',
        namespace: 'punctual',
        fields: [{ name: 'released', type: 'string' }],
      }),
    );
    const bad = { name: 'RunReleased', version: 99, file: 'RunReleased.v99.avsc', type, header: headerOf(type) };
    expect(incompatibilities([...schemas, bad])).toEqual(
      expect.arrayContaining([
        expect.stringContaining("RunReleased.v99.avsc can't read"),
        expect.stringContaining("can't read RunReleased.v99.avsc"),
      ]),
    );
  });

  it.each(schemas.map((schema) => [schema.file, schema] as const))('%s is frozen with its golden bytes', (file, schema) => {
    if (!existsSync(join(FOLDER, 'golden', `${schema.name}.v${schema.version}.json`))) {
      throw new Error(
        `${file} has no golden file: run "npm run build && node scripts/freeze-schemas.mjs" and commit what it writes`,
      );
    }
    const frozen = golden(schema);
    const text = readFileSync(join(FOLDER, 'schemas', file));
    // A released file never changes; a change is a new version beside it.
    expect(createHash('sha256').update(text).digest('hex')).toBe(frozen.schemaSha256);
    const { name, event } = new Codec().decode(Buffer.from(frozen.hex, 'hex'));
    expect(name).toBe(schema.name);
    expect(plain(event)).toMatchObject(frozen.event as object);
  });

  it('give every enum a symbol for what a reader does not know', () => {
    const without = schemas.flatMap((schema) =>
      // The parsed type drops an enum's default, so the file's own text is looked at.
      enumsOf(JSON.parse(readFileSync(join(FOLDER, 'schemas', schema.file), 'utf8')) as Schema)
        .filter((one) => one.default === undefined)
        .map((one) => `${schema.file}: ${one.name}`),
    );
    expect(without).toEqual([]);
  });
});

describe('bytes that are no event', () => {
  const codec = new Codec();
  const whole = Buffer.from(golden(schemas.find((schema) => schema.name === 'ExecutionDue')!).hex, 'hex');

  it.each([
    ['nothing', Buffer.alloc(0), 'not_single_object'],
    ['text', Buffer.from('{"hello":1}'), 'not_single_object'],
    ['a fingerprint of nobody', Buffer.concat([Buffer.from([0xc3, 0x01]), Buffer.alloc(40, 9)]), 'unknown_schema'],
    ['a value that was cut off', whole.subarray(0, whole.length - 3), 'corrupt'],
    ['a value with something behind it', Buffer.concat([whole, Buffer.from([1])]), 'corrupt'],
  ])('are refused with a typed error: %s', (_what, bytes, code) => {
    expect(() => codec.decode(bytes)).toThrow(expect.objectContaining({ name: 'CodecError', code, retriable: false }));
  });

  it('are refused for every truncation', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => codec.decode(whole.subarray(0, length))).toThrow(CodecError);
    }
  });

  it('are not written either', () => {
    expect(() => codec.encode('RunReleased', { eventId: 'evt_1' } as never)).toThrow(
      expect.objectContaining({ code: 'invalid_event' }),
    );
  });
});
