import { consumerStalled } from './consumer-stalled';

const health = (lastFetchMs: number, lastActivityMs?: number) => ({
  lastFetchMs,
  lastActivityMs,
  lastHeartbeatMs: 0,
  assigned: new Map(),
});

it('says nothing before the first fetch, nor while the client fetches or tries to', () => {
  expect(consumerStalled(health(0), 1_000_000)).toBeUndefined();
  expect(consumerStalled(health(999_000), 1_000_000)).toBeUndefined();
  expect(consumerStalled(health(100_000, 950_000), 1_000_000)).toBeUndefined();
});

it('says how long a client has been silent', () => {
  expect(consumerStalled(health(100_000, 700_000), 1_000_000)).toBe('the consumer has done nothing for 300 s');
});
