import type { Type } from 'avsc';
import type { AnyEvent, EventName, Events } from './events';
import { loadSchemas, type SchemaVersion } from './schemas';

export type CodecFault = 'not_single_object' | 'unknown_schema' | 'corrupt' | 'invalid_event';

/** Bytes that can't be read, or an event that does not fit its schema. Trying again never helps: park the record. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  readonly retriable = false;
  constructor(
    readonly code: CodecFault,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

const HEADER_BYTES = 10;

interface Writer {
  type: Type;
  header: Buffer;
}
interface Reader {
  name: EventName;
  read: (body: Buffer) => unknown;
}

/**
 * Avro single-object encoding (Avro specification): `C3 01`, the fingerprint of the writer's schema, the value.
 * The repository's schema files are the registry; values of any version are read as the newest.
 */
export class Codec {
  private readonly writers = new Map<string, Writer>();
  private readonly readers = new Map<string, Reader>();

  constructor(versions: SchemaVersion[] = loadSchemas()) {
    for (const { name, type, header } of versions) this.writers.set(name, { type, header });
    for (const { name, type, header } of versions) {
      const newest = this.writers.get(name)!.type;
      const resolver = newest === type ? undefined : newest.createResolver(type);
      // Versions that differ only in what the canonical form drops share a fingerprint; either reads the other's bytes.
      this.readers.set(header.toString('latin1'), {
        name: name as EventName,
        read: (body) => newest.fromBuffer(body, resolver),
      });
    }
  }

  encode<N extends EventName>(name: N, event: Events[N]): Buffer {
    const writer = this.writers.get(name);
    if (!writer) throw new CodecError('unknown_schema', `there is no schema for ${name}`);
    try {
      return Buffer.concat([writer.header, writer.type.toBuffer(event)]);
    } catch (cause) {
      throw new CodecError('invalid_event', `${name} does not fit its schema: ${(cause as Error).message}`, { cause });
    }
  }

  decode(value: Buffer): AnyEvent {
    if (value.length < HEADER_BYTES || value[0] !== 0xc3 || value[1] !== 0x01) {
      throw new CodecError('not_single_object', 'the value does not start with C3 01 and a fingerprint');
    }
    const reader = this.readers.get(value.toString('latin1', 0, HEADER_BYTES));
    if (!reader) {
      throw new CodecError(
        'unknown_schema',
        `no schema has the fingerprint ${value.readBigUInt64LE(2).toString(16).padStart(16, '0')}`,
      );
    }
    try {
      return { name: reader.name, event: reader.read(value.subarray(HEADER_BYTES)) } as AnyEvent;
    } catch (cause) {
      throw new CodecError('corrupt', `the value is not a whole ${reader.name}: ${(cause as Error).message}`, { cause });
    }
  }
}
