import fc from 'fast-check';
import { DelayQueue } from './delay-queue';

describe('DelayQueue', () => {
  it('hands out every item once, never early, and earliest first', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { maxLength: 200 }), (dues) => {
        const queue = new DelayQueue<number>();
        dues.forEach((due, index) => queue.add(due, index));
        const out: number[] = [];
        for (let now = 0; now <= 511; now += 7) {
          for (const index of queue.takeDue(now)) {
            expect(dues[index]!).toBeLessThanOrEqual(now);
            out.push(index);
          }
        }
        expect([...out].sort((a, b) => a - b)).toEqual(dues.map((_, index) => index));
        expect(queue.size).toBe(0);
        const buckets = out.map((index) => Math.ceil(dues[index]!));
        expect(buckets).toEqual([...buckets].sort((a, b) => a - b));
      }),
    );
  });

  it('keeps the order of adding within a millisecond', () => {
    const queue = new DelayQueue<string>();
    queue.add(5, 'first');
    queue.add(4.2, 'second');
    expect(queue.nextDueMs).toBe(5);
    expect(queue.takeDue(4.9)).toEqual([]);
    expect(queue.takeDue(5)).toEqual(['first', 'second']);
  });
});
