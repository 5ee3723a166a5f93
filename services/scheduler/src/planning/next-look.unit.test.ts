import { nextLookInMs, type Look } from './next-look';

const intervals = { pollMs: 1_000, unservedMs: 100 };
const idle: Look = { slices: 0, woken: 0, setAside: 0, skipped: 0, more: false, nextDueInMs: null, unserved: false };

it.each<[string, Partial<Look>, number]>([
  ['polls when there is nothing', {}, 1_000],
  ['looks at once if not all numbers fitted into the round', { slices: 1, more: true, nextDueInMs: 500 }, 0],
  ['sleeps after a round that took all there was', { slices: 1, nextDueInMs: 500 }, 500],
  ['looks at once after it set runs aside, since others may be behind them', { setAside: 1 }, 0],
  ['looks at once after a number was locked by somebody else', { skipped: 1, unserved: true }, 0],
  ['sleeps until the next instant, rounded up', { nextDueInMs: 12.3 }, 13],
  ['does not wait for an instant that has come', { nextDueInMs: -3 }, 0],
  ['looks more often while due work waits for credit', { unserved: true }, 100],
  ['takes the nearest of all', { unserved: true, nextDueInMs: 40 }, 40],
  ['does not sleep longer than the poll for an instant far away', { nextDueInMs: 1_400 }, 1_000],
])('%s', (_name, look, expected) => {
  expect(nextLookInMs({ ...idle, ...look }, intervals)).toBe(expected);
});
