import type { Message } from '../../tools/demo/src/api-answers';
import type { RunningSimulator } from '../../tools/local-platform/src/simulator-process';

/** Deliveries of one number in the order of their arrival, in milliseconds of the provider's monotonic clock. */
export async function arrivals(simulator: RunningSimulator, phoneNumberId: string): Promise<number[]> {
  const times: number[] = [];
  for await (const { monotonicMicros } of simulator.control.streamDeliveries({ phoneNumberId }))
    times.push(monotonicMicros / 1000);
  return times.sort((a, b) => a - b);
}

/** (n - 1) / (last - first), a second. */
export function achievedRate(times: readonly number[]): number {
  return times.length < 2 ? 0 : ((times.length - 1) * 1000) / (times.at(-1)! - times[0]!);
}

/** At least 0.96 of the allowed rate, and not more than all of it. */
export function expectPaced(times: readonly number[], ratePerSecond: number): void {
  const share = achievedRate(times) / ratePerSecond;
  expect(share).toBeLessThanOrEqual(1);
  expect(share).toBeGreaterThanOrEqual(0.96);
}

/** The longest time without an arrival, and where it is. */
export function longestGap(times: readonly number[]): { ms: number; index: number } {
  let longest = { ms: 0, index: 0 };
  for (let index = 1; index < times.length; index++) {
    const ms = times[index]! - times[index - 1]!;
    if (ms > longest.ms) longest = { ms, index };
  }
  return longest;
}

const ARRIVED = new Set(['submitted', 'sent', 'delivered', 'read']);
const OPEN_ENDED = new Set(['uncertain', 'unconfirmed']);

/** Where what we say of a message is not what the provider has: empty when everything is true. */
export function contradictions(messages: readonly Message[], received: ReadonlyMap<string, number>): string[] {
  return messages.flatMap((message) => {
    const count = received.get(message.to.replace(/[^0-9]/g, '')) ?? 0;
    const wanted = ARRIVED.has(message.status)
      ? [1]
      : OPEN_ENDED.has(message.status)
        ? [0, 1]
        : message.error !== null
          ? [0, 1]
          : [0];
    return wanted.includes(count) ? [] : [`${message.id} is ${message.status} and was received ${count} times`];
  });
}
