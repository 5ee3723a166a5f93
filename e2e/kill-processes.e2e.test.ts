import { waitUntil } from '#runtime/wait-until';
import {
  messagesOf,
  received,
  recipients,
  schedule,
  startInstallation,
  sumOf,
  untilSettled,
  upload,
  type Installation,
} from './support/installation';
import { arrivals, contradictions, longestGap } from './support/oracle';

describe('two schedulers and three senders, of which some die', () => {
  let on: Installation;
  beforeAll(async () => {
    on = await startInstallation({ rates: [80, 80, 80], instances: { scheduler: 2, sender: 3 } });
  });
  afterAll(async () => {
    await on?.stop();
  });

  it('kill -9 of a scheduler and a sender: each recipient once, or an honest uncertain; sending resumes within 10 s', async () => {
    const people = recipients(3_000);
    const runs: Array<{ runId: string }> = [];
    for (const [index, number] of on.numbers.entries()) {
      const audienceId = await upload(on.api, people.slice(index * 1_000, (index + 1) * 1_000));
      runs.push(await schedule(on.api, number, { audienceId }));
    }
    await waitUntil('a third of it to be out', async () => (await on.simulator.control.summary()).deliveries >= 1_000, {
      deadlineMs: 40_000,
    });
    await Promise.all([on.platform.of('scheduler')[0]!.kill(), on.platform.of('sender')[0]!.kill()]);

    let total = 0;
    for (const [index, run] of runs.entries()) {
      const settled = await untilSettled(on.api, run.runId, 60_000);
      total += sumOf(settled.counts);
      const { phoneNumberId } = on.numbers[index]!;
      expect(contradictions(await messagesOf(on.api, run.runId), await received(on.simulator, phoneNumberId))).toEqual([]);
      expect(longestGap(await arrivals(on.simulator, phoneNumberId)).ms).toBeLessThanOrEqual(10_000);
    }
    expect(total).toBe(3_000);
  });

  it('a sender that was stopped past its deadlines wakes up and sends nothing', async () => {
    for (const service of [...on.platform.of('scheduler'), ...on.platform.of('sender')])
      if (service.pid === undefined) service.start();
    await on.platform.untilReady();
    const people = recipients(900, 3_000);
    const before = (await on.simulator.control.summary()).deliveries;
    const runs: Array<{ runId: string }> = [];
    for (const [index, number] of on.numbers.entries()) {
      const audienceId = await upload(on.api, people.slice(index * 300, (index + 1) * 300));
      runs.push(await schedule(on.api, number, { audienceId }));
    }
    await waitUntil('some of it to be out', async () => (await on.simulator.control.summary()).deliveries >= before + 100);
    const stopped = on.platform.of('sender');
    // Every sender once: whoever has claims in hand is among them.
    stopped[0]!.pause();
    stopped[1]!.pause();
    await waitUntil(
      'everything to be out without them',
      async () => {
        const states = await Promise.all(
          runs.map((run) => on.api.get<{ counts: Record<string, number> }>(`/v1/runs/${run.runId}`)),
        );
        return states.every(({ counts }) =>
          ['scheduled', 'waiting', 'sending', 'submitted', 'sent'].every((status) => (counts[status] ?? 0) === 0),
        );
      },
      { deadlineMs: 60_000 },
    );
    const settledAt = (await on.simulator.control.summary()).deliveries;
    stopped[0]!.resume();
    stopped[1]!.resume();
    await on.platform.untilReady();
    for (const [index, run] of runs.entries()) {
      await untilSettled(on.api, run.runId);
      const counts = await received(on.simulator, on.numbers[index]!.phoneNumberId);
      expect([...counts.values()].filter((count) => count > 1)).toEqual([]);
      expect(contradictions(await messagesOf(on.api, run.runId), counts)).toEqual([]);
    }
    expect((await on.simulator.control.summary()).deliveries).toBe(settledAt);
  });
});
