import { recipients, schedule, untilSettled, upload } from '../e2e/support/installation';
import { achievedRate, arrivals } from '../e2e/support/oracle';
import { withInstallation } from './support/bench-installation';
import { printTable } from './support/print-table';

/** Messages due at once on one number at a time: how much of the allowed rate is used, and what any second saw at most. */
export async function run({ smoke }: { smoke: boolean }): Promise<void> {
  const rates = smoke ? [80] : [10, 80, 1_000];
  const rows: Array<Array<string | number>> = [];
  await withInstallation({ rates }, async (on) => {
    for (const number of on.numbers) {
      const rate = number.ratePerSecond;
      const count = smoke ? 200 : Math.max(300, Math.min(rate * 25, 20_000));
      const before = (await on.simulator.control.summary()).rejectedByRate;
      const { runId } = await schedule(on.api, number, { audienceId: await upload(on.api, recipients(count)) });
      await untilSettled(on.api, runId, 120_000, ['submitted', 'sent']);
      const times = await arrivals(on.simulator, number.phoneNumberId);
      const rejected = (await on.simulator.control.summary()).rejectedByRate - before;
      rows.push([`${rate}/s`, count, achievedRate(times), achievedRate(times) / rate, mostInAnySecond(times), rejected]);
    }
  });
  printTable(
    'Pace of one number, at the provider',
    ['allowed', 'messages', 'achieved/s', 'ratio to allowed', 'most in any 1,000 ms', 'rejected'],
    rows,
  );
}

function mostInAnySecond(times: readonly number[]): number {
  let most = 0;
  let from = 0;
  for (let to = 0; to < times.length; to++) {
    while (times[to]! - times[from]! >= 1_000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}
