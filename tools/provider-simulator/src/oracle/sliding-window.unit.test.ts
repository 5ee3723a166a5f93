import fc from 'fast-check';
import { BusiestWindow, RateGate } from './sliding-window';

const WINDOW = 990_000;
const arrivals = fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 300 }).map((gaps) => {
  let time = 0;
  return gaps.map((gap) => (time += gap));
});

describe('RateGate', () => {
  it('lets the limit through and refuses the next until one window has passed, to the microsecond', () => {
    const gate = new RateGate(3, WINDOW);
    expect([0, 10, 20].map((time) => gate.tryAccept(time))).toEqual([true, true, true]);
    expect(gate.tryAccept(WINDOW - 1)).toBe(false);
    expect(gate.tryAccept(WINDOW)).toBe(true);
    expect(gate.tryAccept(WINDOW + 9)).toBe(false);
    expect(gate.tryAccept(WINDOW + 10)).toBe(true);
  });

  it('accepts exactly what a search over all accepted times would accept', () => {
    fc.assert(
      fc.property(arrivals, fc.integer({ min: 1, max: 8 }), (times, limit) => {
        const gate = new RateGate(limit, WINDOW);
        const accepted: number[] = [];
        for (const time of times) {
          const expected = accepted.filter((earlier) => earlier > time - WINDOW).length < limit;
          expect(gate.tryAccept(time)).toBe(expected);
          if (expected) accepted.push(time);
        }
      }),
    );
  });

  it('keeps what it accepted when the limit changes', () => {
    const gate = new RateGate(undefined, WINDOW);
    for (let time = 0; time < 2000; time += 1) expect(gate.tryAccept(time)).toBe(true);
    gate.limitPerWindow = 2000;
    expect(gate.tryAccept(2000)).toBe(false);
    gate.limitPerWindow = 2001;
    expect(gate.tryAccept(2000)).toBe(true);
  });
});

describe('BusiestWindow', () => {
  it('finds the most arrivals of any window', () => {
    fc.assert(
      fc.property(arrivals, (times) => {
        const window = new BusiestWindow(1_000_000);
        times.forEach((time) => window.record(time));
        const counts = times.map((end) => times.filter((time) => time > end - 1_000_000 && time <= end).length);
        expect(window.most).toBe(Math.max(...counts));
      }),
    );
  });
});
