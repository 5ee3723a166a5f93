import fc from 'fast-check';
import { shareOutRanges, shareWith, sizeOf, weightOf, type RefusedRange } from './refused-ranges';

const range = (from: number, until: number, more: Partial<RefusedRange> = {}): RefusedRange => ({
  revision: 1,
  from,
  until,
  count: until - from,
  status: 'cancelled',
  reason: 'cancelled',
  at: 0,
  ...more,
});

it('gives a position to the range that was told first', () => {
  const shares = shareOutRanges([range(0, 10, { at: 2 }), range(5, 20, { at: 1, status: 'expired' })], 1);
  expect(shares.map(({ range: { status }, segments }) => [status, segments])).toEqual([
    ['expired', [{ from: 5, until: 20 }]],
    ['cancelled', [{ from: 0, until: 5 }]],
  ]);
  expect(shareWith(shares, 7)?.range.status).toBe('expired');
  expect(shareWith(shares, 20)).toBeUndefined();
});

it('takes back what an older revision refused', () => {
  expect(shareOutRanges([range(0, 10), range(4, 6, { revision: 2 })], 2).map(({ range: { revision } }) => revision)).toEqual([2]);
  expect(shareOutRanges([range(0, 10)], 2)).toEqual([]);
});

it('counts a range less what has facts of its own, and not more than it said', () => {
  const [share] = shareOutRanges([range(0, 10, { count: 7 })], 1);
  // Three of the ten have claims: their facts come, and are no part of the seven.
  expect([0, 3, 4, 10].map((answered) => weightOf(share!, answered))).toEqual([7, 7, 6, 0]);
});

it('counts no position twice, whatever the ranges and their order', () => {
  const someRange = fc
    .record({
      from: fc.nat({ max: 40 }),
      size: fc.integer({ min: 1, max: 20 }),
      at: fc.nat({ max: 5 }),
      revision: fc.integer({ min: 1, max: 2 }),
    })
    .map(({ from, size, at, revision }) => range(from, from + size, { at, revision }));
  fc.assert(
    fc.property(
      fc
        .array(someRange, { maxLength: 8 })
        .chain((ranges) => fc.tuple(fc.constant(ranges), fc.shuffledSubarray(ranges, { minLength: ranges.length }))),
      ([ranges, shuffled]) => {
        const covered = new Set<number>();
        for (const { from, until, revision } of ranges) {
          if (revision === 2) for (let position = from; position < until; position++) covered.add(position);
        }
        const total = (list: RefusedRange[]) => shareOutRanges(list, 2).reduce((sum, { segments }) => sum + sizeOf(segments), 0);
        expect(total(ranges)).toBe(covered.size);
        expect(total(shuffled)).toBe(covered.size);
      },
    ),
  );
});
