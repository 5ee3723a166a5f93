import fc from 'fast-check';
import { seededRandom } from '../timing/random';
import { CountTable, recipientKey, textKey } from './count-table';

describe('CountTable', () => {
  it('counts as a Map does, through growth', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = seededRandom(seed);
        const table = new CountTable(100_000);
        const expected = new Map<number, number>();
        for (let added = 0; added < 9000; added += 1) {
          const value = Math.floor(random() * 6000);
          const key = recipientKey(String(12_000_000_000 + value * 4_294_967_296));
          expected.set(value, (expected.get(value) ?? 0) + 1);
          if (table.increment(key.high, key.low) !== expected.get(value)) throw new Error(`wrong count for ${value}`);
        }
        const histogram: Record<string, number> = {};
        for (const count of expected.values()) histogram[count] = (histogram[count] ?? 0) + 1;
        expect([table.distinct, table.histogram()]).toEqual([expected.size, histogram]);
      }),
      { numRuns: 20 },
    );
  });

  it('says so when it has no room for another key, and still counts the known ones', () => {
    const table = new CountTable(2);
    const increment = (text: string): number => table.increment(textKey(text).high, textKey(text).low);
    expect(['a', 'b', 'c', 'a'].map(increment)).toEqual([1, 1, 0, 2]);
    expect(table.uncounted).toBe(1);
    expect(table.distinct).toBe(2);
  });

  it('tells 200,000 similar tokens apart', () => {
    const seen = new Set<string>();
    for (let index = 0; index < 200_000; index += 1) {
      const { high, low } = textKey(`p1.${index.toString(32).padStart(45, '0')}`);
      seen.add(`${high}/${low}`);
    }
    expect(seen.size).toBe(200_000);
  });
});
