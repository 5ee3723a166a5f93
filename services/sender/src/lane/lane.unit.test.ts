import fc from 'fast-check';
import { CreditReport, laneCredit } from './credit';
import { PriorityQueue } from './priority-queue';

describe('the queue of a lane', () => {
  it('gives the most urgent first, and within a priority what came first', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 300 }),
        fc.integer({ min: 1, max: 50 }),
        (priorities, most) => {
          const queue = new PriorityQueue<{ priority: number; order: number }>();
          priorities.forEach((priority, order) => queue.add({ priority, order }));
          const taken = [];
          while (queue.size > 0) {
            const some = queue.take(most);
            // What could not be sent goes back in front and comes first again.
            queue.putBack(some);
            taken.push(...queue.take(most));
          }
          const expected = priorities
            .map((priority, order) => ({ priority, order }))
            .sort((a, b) => a.priority - b.priority || a.order - b.order);
          expect(taken).toEqual(expected);
        },
      ),
    );
  });

  it('counts what is removed', () => {
    const queue = new PriorityQueue<{ priority: number }>();
    for (let priority = 1; priority <= 9; priority++) queue.add({ priority });
    expect(queue.remove(({ priority }) => priority % 2 === 0)).toHaveLength(4);
    expect(queue.size).toBe(5);
    expect(queue.take(10).map(({ priority }) => priority)).toEqual([1, 3, 5, 7, 9]);
  });
});

describe('the credit of a lane', () => {
  it.each([
    [{ ratePerSecond: 80, queued: 0, blocked: false }, 160],
    [{ ratePerSecond: 80, queued: 100, blocked: false }, 60],
    [{ ratePerSecond: 80, queued: 500, blocked: false }, 0],
    [{ ratePerSecond: 80, queued: 0, blocked: true }, 0],
    [{ ratePerSecond: 0.1, queued: 0, blocked: false }, 1],
    [{ ratePerSecond: 0.1, queued: 1, blocked: false }, 0],
  ])('%j is %d', (lane, credit) => {
    expect(laneCredit(lane, 2_000)).toBe(credit);
  });
});

describe('the credit report', () => {
  it('tells what has changed, and all when a refresh is due', () => {
    const report = new CreditReport();
    const levels = new Map([
      ['a', 10],
      ['b', 20],
    ]);
    const first = report.due(levels, false);
    expect(first).toEqual(levels);
    report.reported(first, levels);
    expect(report.due(levels, false).size).toBe(0);
    expect(report.due(levels, true)).toEqual(levels);
    expect(
      report.due(
        new Map([
          ['a', 10],
          ['b', 19],
        ]),
        false,
      ),
    ).toEqual(new Map([['b', 19]]));
  });

  it('tells a level that looks the same when records came: the scheduler has subtracted them', () => {
    const report = new CreditReport();
    const levels = new Map([['a', 10]]);
    report.reported(report.due(levels, false), levels);
    report.received('a');
    expect(report.due(levels, false)).toEqual(levels);
  });

  it('tells it again when the telling failed', () => {
    const report = new CreditReport();
    const levels = new Map([['a', 10]]);
    report.due(levels, false);
    expect(report.due(levels, false)).toEqual(levels);
  });

  it('gives a number up once, with nothing', () => {
    const report = new CreditReport();
    const levels = new Map([['a', 10]]);
    report.reported(report.due(levels, false), levels);
    const none = new Map<string, number>();
    const gone = report.due(none, false);
    expect(gone).toEqual(new Map([['a', 0]]));
    report.reported(gone, none);
    expect(report.due(none, true).size).toBe(0);
  });
});
