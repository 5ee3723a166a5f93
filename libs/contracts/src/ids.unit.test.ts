import fc from 'fast-check';
import { attemptToken, readAttemptToken } from './attempt-token';
import { decodeCrockford, encodeCrockford } from './crockford';
import {
  bucketOf,
  formatId,
  newUuid,
  occurrenceId,
  parseId,
  recipientHash,
  recipientHashOf,
  runId,
  runOf,
  uuidBytes,
  uuidText,
} from './ids';

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array));

describe('ids', () => {
  it('come back from their text in any case', () => {
    fc.assert(
      fc.property(bytes(20), (id) => {
        const text = formatId('msg', id);
        expect(text).toMatch(/^msg_[0-9a-hjkmnp-tv-z]{32}$/);
        expect(parseId('msg', text)).toEqual(id);
        expect(parseId('msg', text.toUpperCase())).toEqual(id);
        expect(parseId('run', text)).toBeNull();
      }),
    );
  });

  it('are one text for one id: other filling bits are refused', () => {
    const text = encodeCrockford(Buffer.alloc(12, 255));
    const last = text.at(-1)!;
    const others = [...'0123456789abcdefghjkmnpqrstvwxyz'].filter((c) => c !== last);
    const accepted = others.filter((c) => decodeCrockford(text.slice(0, -1) + c, 12) !== null);
    // 96 bits leave the last character 4 filling bits: of 32 characters two end in zeros.
    expect(accepted).toHaveLength(1);
  });

  it('read the letters that people mistake for digits', () => {
    expect(decodeCrockford('0O1IL'.padEnd(8, '0'), 5)).toEqual(decodeCrockford('00111'.padEnd(8, '0'), 5));
    expect(decodeCrockford('u0000000', 5)).toBeNull();
  });

  it('are the same whoever derives them, and differ by schedule, slot and recipient', () => {
    const key = Buffer.alloc(32, 7);
    const schedule = newUuid(1_800_000_000_000);
    const run = runId(bucketOf(1_800_000_000_000), schedule, 'once');
    const id = occurrenceId(run, recipientHash(key, '+12025550143'));
    expect(occurrenceId(runId(20_833, schedule, 'once'), recipientHash(key, '+12025550143'))).toEqual(id);
    expect(runOf(id)).toEqual(run);
    expect(recipientHashOf(id)).toEqual(recipientHash(key, '+12025550143'));
    expect(runId(20_833, schedule, '2027-01-01')).not.toEqual(run);
    expect(recipientHash(key, '+12025550144')).not.toEqual(recipientHash(key, '+12025550143'));
    expect(recipientHash(Buffer.alloc(32, 8), '+12025550143')).not.toEqual(recipientHash(key, '+12025550143'));
  });

  it('sort by their day', () => {
    const schedule = newUuid(1);
    expect(Buffer.compare(runId(20_000, schedule, 'once'), runId(20_001, schedule, 'once'))).toBe(-1);
  });

  it('of UUIDs keep version, variant and time', () => {
    const id = newUuid(1_800_000_000_123);
    expect(uuidText(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(id.readUIntBE(0, 6)).toBe(1_800_000_000_123);
    expect(uuidBytes(uuidText(id))).toEqual(id);
  });
});

describe('attempt tokens', () => {
  const key = Buffer.alloc(32, 3);

  it('name occurrence and attempt by themselves', () => {
    fc.assert(
      fc.property(bytes(20), fc.integer({ min: 1, max: 65_535 }), (id, attempt) => {
        const token = attemptToken(key, id, attempt);
        expect(token).toHaveLength(48);
        expect(readAttemptToken(key, token)).toEqual({ occurrenceId: id, attempt });
      }),
    );
  });

  it('are refused when any character was changed, or another key made them', () => {
    const token = attemptToken(key, Buffer.alloc(20, 1), 1);
    for (let at = 0; at < token.length; at++) {
      const changed = token.slice(0, at) + (token[at] === 'z' ? 'y' : 'z') + token.slice(at + 1);
      expect(readAttemptToken(key, changed)).toBeNull();
    }
    expect(readAttemptToken(Buffer.alloc(32, 4), token)).toBeNull();
    expect(readAttemptToken(key, '')).toBeNull();
  });

  it('do not begin at attempt 0', () => {
    expect(() => attemptToken(key, Buffer.alloc(20), 0)).toThrow(RangeError);
  });
});
