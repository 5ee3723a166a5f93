import { pause } from '#runtime/pause';
import { waitUntil } from '#runtime/wait-until';
import type { Schedule } from '../tools/demo/src/api-answers';
import { recipients, schedule, type Installation } from '../e2e/support/installation';
import { withInstallation } from './support/bench-installation';
import { percentile } from './support/percentile';
import { printTable } from './support/print-table';

const NUMBERS = 4;
const PER_SECOND = 200;

/**
 * Schedules of one recipient, each due at an instant of its own: how late the bytes are at the provider. And messages for
 * `now`: from the API's answer to the provider. Both on the wall clock that all processes of the machine share.
 */
export async function run({ smoke }: { smoke: boolean }): Promise<void> {
  const seconds = smoke ? 2 : 20;
  const count = seconds * PER_SECOND;
  await withInstallation({ rates: Array.from({ length: NUMBERS }, () => 250) }, async (on) => {
    const people = recipients(count + 500);
    const firstDue = Date.now() + 10_000 + count * 12;
    const due = new Map<string, number>();
    await inParallel(16, count, async (index) => {
      const at = firstDue + Math.round((index * 1_000) / PER_SECOND);
      due.set(people[index]!.slice(1), at);
      await schedule(
        on.api,
        on.numbers[index % NUMBERS]!,
        { recipients: [{ to: people[index]! }] },
        { when: { at: new Date(at).toISOString() } },
      );
    });
    const spare = firstDue - Date.now();
    if (spare < 1_000) throw new Error(`creating ${count} schedules took ${-spare} ms longer than planned`);
    const arrived = await arrivalsOf(on, [...due.keys()], spare + seconds * 1_000 + 30_000);
    const lags = [...due].map(([to, at]) => arrived.get(to)! - at);

    /** Each is sent as soon as a pair of hands is free, then after the given rest. */
    const lagsOfNow = async (urgent: string[], width: number, restMs: number): Promise<number[]> => {
      const accepted = new Map<string, number>();
      await inParallel(width, urgent.length, async (index) => {
        await schedule(on.api, on.numbers[index % NUMBERS]!, { recipients: [{ to: urgent[index]! }] });
        accepted.set(urgent[index]!.slice(1), Date.now());
        await pause(restMs);
      });
      const arrivedNow = await arrivalsOf(on, [...accepted.keys()], 30_000);
      return [...accepted].map(([to, at]) => arrivedNow.get(to)! - at);
    };
    const alone = await lagsOfNow(people.slice(count, count + (smoke ? 10 : 100)), 1, 200);
    const crowded = await lagsOfNow(people.slice(count + 100, count + (smoke ? 120 : 300)), 2, 0);
    printTable(
      'Lag at the provider, ms',
      ['what', 'messages', 'early', 'p50', 'p90', 'p99', 'max'],
      [
        [`due to provider, ${PER_SECOND}/s`, lags.length, lags.filter((lag) => lag < 0).length, ...spread(lags)],
        ['now, five a second: accepted to provider', alone.length, '-', ...spread(alone)],
        ['now, as fast as the api takes two at a time', crowded.length, '-', ...spread(crowded)],
      ],
    );
  });
}

const spread = (lags: number[]): number[] => [0.5, 0.9, 0.99, 1].map((share) => percentile(lags, share));

async function arrivalsOf(on: Installation, wanted: string[], deadlineMs: number): Promise<Map<string, number>> {
  const arrived = new Map<string, number>();
  let afterSequence = -1;
  await waitUntil(
    `${wanted.length} messages to arrive`,
    async () => {
      for await (const delivery of on.simulator.control.streamDeliveries(afterSequence < 0 ? {} : { afterSequence })) {
        afterSequence = delivery.sequence;
        if (!arrived.has(delivery.recipient)) arrived.set(delivery.recipient, delivery.wallMicros / 1_000);
      }
      return wanted.every((to) => arrived.has(to));
    },
    { deadlineMs, everyMs: 1_000 },
  );
  return arrived;
}

async function inParallel(width: number, count: number, work: (index: number) => Promise<Schedule | void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let index = next++; index < count; index = next++) await work(index);
    }),
  );
}
