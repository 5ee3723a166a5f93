import { setTimeout as sleep } from 'node:timers/promises';
import { letIdleConnectionsSleep } from './idle-request-queue';

interface Queue {
  pending: unknown[];
  checkPendingRequests(): void;
  push(request: object): void;
  destroy(): void;
  maybeThrottle(milliseconds: number): void;
}

function queueOf(inFlightAtMost: number): { queue: Queue; looks: () => number } {
  letIdleConnectionsSleep();
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the class is not exported and has no types
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const quiet = { debug: () => undefined, error: () => undefined };
  const queue = new RequestQueue({
    maxInFlightRequests: inFlightAtMost,
    requestTimeout: 1_000,
    enforceRequestTimeout: false,
    clientId: 'test',
    broker: 'nowhere:1',
    logger: quiet,
  });
  let looks = 0;
  const look = queue.checkPendingRequests.bind(queue);
  queue.checkPendingRequests = () => {
    looks++;
    look();
  };
  return { queue, looks: () => looks };
}

const request = (correlationId: number, sent: number[]) => ({
  entry: { correlationId, apiKey: 0, apiName: 'Test', apiVersion: 0, resolve: () => undefined, reject: () => undefined },
  expectResponse: true,
  sendRequest: () => sent.push(correlationId),
});

it('does not look again where nothing waits', async () => {
  const { queue, looks } = queueOf(10);
  queue.checkPendingRequests();
  await sleep(50);
  expect(looks()).toBe(1);
  queue.destroy();
});

it('still sends what had to wait for the end of a throttle', async () => {
  const { queue } = queueOf(10);
  const sent: number[] = [];
  queue.maybeThrottle(30);
  queue.push(request(1, sent));
  expect(sent).toEqual([]);
  for (let waited = 0; sent.length === 0 && waited < 2_000; waited += 10) await sleep(10);
  expect(sent).toEqual([1]);
  queue.destroy();
});
