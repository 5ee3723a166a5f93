import { waitUntil } from '#runtime/wait-until';
import type { Run } from '../tools/demo/src/api-answers';
import { recipients, schedule, startInstallation, upload, type Installation } from './support/installation';

const SECOND_STARTS_AFTER_MS = 60_000;
const WATCHED_MS = 15_000;

describe('work that competes for one number', () => {
  let on: Installation;
  beforeAll(async () => {
    on = await startInstallation({ rates: [80] });
  });
  afterAll(async () => {
    await on?.stop();
  });

  it('an urgent message overtakes a campaign of 50,000 within 3 s, and a second campaign of the same priority gets half', async () => {
    const number = on.numbers[0]!;
    const people = recipients(50_000);
    const first = await schedule(on.api, number, { audienceId: await upload(on.api, people) });
    const startedAt = performance.now();
    await waitUntil('the campaign to run', async () => (await on.simulator.control.summary()).deliveries > 200, {
      deadlineMs: 20_000,
    });

    for (const to of ['+12025550199', '+12065550198', '+12085550197']) {
      const asked = Date.now();
      await schedule(on.api, number, { recipients: [{ to }] }, { priority: 1 });
      const { deliveries } = await waitUntil('the urgent message to arrive', async () => {
        const report = await on.simulator.control.recipient(to);
        return report.count > 0 ? report : null;
      });
      expect(deliveries[0]!.wallMicros / 1000 - asked).toBeLessThanOrEqual(3_000);
    }

    const audienceId = await upload(on.api, people.slice().reverse());
    await waitUntil('a minute to pass since the first began', () => performance.now() - startedAt > SECOND_STARTS_AFTER_MS, {
      deadlineMs: SECOND_STARTS_AFTER_MS,
      everyMs: 200,
    });
    const second = await schedule(on.api, number, { audienceId }, { content: { text: 'The second campaign' } });
    const done = async (runId: string): Promise<number> => {
      const { counts, total } = await on.api.get<Run>(`/v1/runs/${runId}`);
      return total - (counts.scheduled ?? 0) - (counts.waiting ?? 0);
    };
    await waitUntil('the second campaign to run', async () => (await done(second.runId)) > 0);
    const [firstBefore, secondBefore] = [await done(first.runId), await done(second.runId)];
    const since = performance.now();
    await waitUntil('them to share for a while', () => performance.now() - since > WATCHED_MS, { deadlineMs: WATCHED_MS * 2 });
    const [ofFirst, ofSecond] = [(await done(first.runId)) - firstBefore, (await done(second.runId)) - secondBefore];
    expect(ofFirst + ofSecond).toBeGreaterThan(0.5 * 80 * (WATCHED_MS / 1000));
    // The release is equal; one window of two seconds may still be under way for either.
    expect(Math.abs(ofFirst - ofSecond) / (ofFirst + ofSecond)).toBeLessThan(0.2);
    for (const run of [first, second]) await on.api.post(`/v1/schedules/${run.id}/cancel`);
  });
});
