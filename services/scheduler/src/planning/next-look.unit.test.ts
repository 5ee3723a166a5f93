import { nextLookInMs, type Look } from './next-look';

const intervals = { pollMs: 1_000, unservedMs: 100 };
const idle: Look = { slices: 0, woken: 0, setAside: 0, nextDueInMs: null, unserved: false };

it.each<[string, Partial<Look>, number]>([
  ['polls when there is nothing', {}, 1_000],
  ['looks at once after it released something', { slices: 1, nextDueInMs: 500 }, 0],
  ['looks at once after it set runs aside, since others may be behind them', { setAside: 1 }, 0],
  ['sleeps until the next instant, rounded up', { nextDueInMs: 12.3 }, 13],
  ['does not wait for an instant that has come', { nextDueInMs: -3 }, 0],
  ['looks more often while due work waits for credit', { unserved: true }, 100],
  ['takes the nearest of all', { unserved: true, nextDueInMs: 40 }, 40],
  ['does not sleep longer than the poll for an instant far away', { nextDueInMs: 1_400 }, 1_000],
])('%s', (_name, look, expected) => {
  expect(nextLookInMs({ ...idle, ...look }, intervals)).toBe(expected);
});
