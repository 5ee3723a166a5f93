import fc from 'fast-check';
import { RecipientSet } from './recipient-set';

const hash = fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => Buffer.from(bytes));

it('holds exactly what was put in, whatever the bytes', () => {
  fc.assert(
    fc.property(fc.array(hash, { maxLength: 200 }), fc.array(hash, { maxLength: 20 }), (inside, asked) => {
      const set = new RecipientSet(Buffer.concat([...inside].sort(Buffer.compare)));
      const known = new Set(inside.map((each) => each.toString('hex')));
      const packed = Buffer.concat([...asked, ...inside]);
      for (let at = 0; at < packed.length; at += 8) {
        expect(set.has(packed, at)).toBe(known.has(packed.toString('hex', at, at + 8)));
      }
    }),
  );
});

it('refuses bytes that are no whole hashes', () => {
  expect(() => new RecipientSet(Buffer.alloc(12))).toThrow(RangeError);
});
