import fc from 'fast-check';
import { RecipientSet } from './recipient-set';
import { choosePositions, isWhole } from './slice';

const hashOf = (position: number): Buffer => {
  const hash = Buffer.alloc(8);
  hash.writeUInt32BE((position * 2_654_435_761) >>> 0, 0);
  hash.writeUInt32BE(position, 4);
  return hash;
};
const hashesOf = (from: number, until: number): Buffer =>
  Buffer.concat(Array.from({ length: until - from }, (_, index) => hashOf(from + index)));
const setOf = (positions: number[]): RecipientSet => new RecipientSet(Buffer.concat(positions.map(hashOf).sort(Buffer.compare)));

it('hands over all of a slice when nobody is left out', () => {
  expect(choosePositions({ from: 3, until: 6, quota: 3, hashes: hashesOf(3, 6) })).toEqual({ positions: [3, 4, 5], until: 6 });
});

it('moves over those left out, and past them at the end, without using the quota', () => {
  const slice = { from: 0, until: 10, quota: 3, hashes: hashesOf(0, 10) };
  expect(choosePositions(slice, setOf([0, 1, 3, 6, 7, 8, 9]))).toEqual({ positions: [2, 4, 5], until: 10 });
  expect(choosePositions(slice, setOf([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))).toEqual({ positions: [], until: 10 });
});

it('covers a run completely, each position once, by slices of any size', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 120 }),
      fc.uniqueArray(fc.integer({ min: 0, max: 119 }), { maxLength: 60 }),
      fc.array(fc.record({ walk: fc.integer({ min: 1, max: 50 }), quota: fc.integer({ min: 1, max: 20 }) }), {
        minLength: 1,
        maxLength: 20,
      }),
      (total, leftOut, sizes) => {
        const set = setOf(leftOut);
        const handed: number[] = [];
        let cursor = 0;
        for (let turn = 0; cursor < total; turn++) {
          const { walk, quota } = sizes[turn % sizes.length]!;
          const until = Math.min(total, cursor + walk);
          const chosen = choosePositions({ from: cursor, until, quota, hashes: hashesOf(cursor, until) }, set);
          expect(chosen.positions.length).toBeLessThanOrEqual(quota);
          expect(chosen.until).toBeGreaterThan(cursor);
          handed.push(...chosen.positions);
          cursor = chosen.until;
        }
        expect(handed).toEqual([...Array(total).keys()].filter((position) => !leftOut.includes(position)));
      },
    ),
  );
});

it('knows a slice whose audience lacks a chunk', () => {
  expect(isWhole({ from: 0, until: 2, hashes: hashesOf(0, 2) })).toBe(true);
  expect(isWhole({ from: 0, until: 2, hashes: hashesOf(0, 1) })).toBe(false);
});
