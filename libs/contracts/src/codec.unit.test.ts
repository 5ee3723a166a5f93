import { Codec } from './codec';
import { crc64Avro } from './crc64-avro';

describe('codec', () => {
  it('computes the fingerprints of the Avro specification', () => {
    expect(crc64Avro('"int"').toString(16)).toBe('7275d51a3f395c8f');
    expect(crc64Avro('{"name":"foo","type":"record","fields":[{"name":"f1","type":"boolean"}]}').toString(16)).toBe(
      '6cd8eaf1c968a33b',
    );
  });

  it('reads what it wrote, in at most 250 bytes for an execution', () => {
    const codec = new Codec();
    const event = {
      occurrenceId: Buffer.alloc(20, 1),
      scheduleId: Buffer.alloc(16, 2),
      revision: 3,
      numberId: Buffer.alloc(16, 4),
      dueAt: 1_800_000_000_000,
      releasedAt: 1_800_000_000_005,
      validUntil: null,
      priority: 5,
      position: 999_999,
    };
    const value = codec.encode('ExecutionDue', event);
    expect(value.length).toBeLessThanOrEqual(250);
    expect(codec.decode(value)).toEqual({ name: 'ExecutionDue', event });
  });
});
