import { Pool } from 'undici';
import { waitUntil } from '#runtime/wait-until';
import type { Run } from '../tools/demo/src/api-answers';
import { recipients, schedule, upload, type Installation } from '../e2e/support/installation';
import { arrivals } from '../e2e/support/oracle';
import { withInstallation } from './support/bench-installation';
import { printTable } from './support/print-table';
import { usageOf } from './support/process-usage';

const NUMBERS = 8;

/**
 * Everything at once on one machine: each message is released, claimed, called, and its sent and delivered webhooks are taken
 * in and projected. Beside it the bare loop that the sender's calls are bounded by: the same client posting to the same simulator.
 */
export async function run({ smoke }: { smoke: boolean }): Promise<void> {
  const count = smoke ? 800 : 40_000;
  await withInstallation(
    {
      rates: Array.from({ length: NUMBERS }, () => 1_000),
      unlimitedProvider: true,
      simulator: {
        latency: { kind: 'fixed', ms: 10 },
        webhooks: {
          readShare: 0,
          batchSize: 100,
          batchWaitMs: 20,
          delays: { sent: { kind: 'fixed', ms: 20 }, delivered: { kind: 'fixed', ms: 60 } },
        },
      },
    },
    async (on) => {
      const each = count / NUMBERS;
      const audiences: string[] = [];
      for (const index of on.numbers.keys()) audiences.push(await upload(on.api, recipients(each, index * each)));
      const before = on.platform.services.map((service) => usageOf(service.pid!)!.cpuSeconds);
      const runs = await Promise.all(
        on.numbers.map((number, index) => schedule(on.api, number, { audienceId: audiences[index]! })),
      );
      const began = performance.now();
      await waitUntil(
        'everything to be delivered',
        async () => {
          const states = await Promise.all(runs.map(({ runId }) => on.api.get<Run>(`/v1/runs/${runId}`)));
          return states.every((state) => (state.counts.delivered ?? 0) === each);
        },
        { deadlineMs: 180_000, everyMs: 250 },
      );
      const seconds = (performance.now() - began) / 1_000;
      const sent = (await Promise.all(on.numbers.map(({ phoneNumberId }) => arrivals(on.simulator, phoneNumberId)))).flat();
      const sendSeconds = (Math.max(...sent) - Math.min(...sent)) / 1_000;
      const bare = await bareCalls(on, smoke ? 500 : 20_000);
      printTable(
        'The whole pipeline',
        ['what', 'messages', 'seconds', 'messages/s', 'ratio to bare calls'],
        [
          ['accepted, sent, delivered and projected', count, seconds, count / seconds, count / seconds / bare],
          ['calls to the provider alone', count, sendSeconds, count / sendSeconds, count / sendSeconds / bare],
          ['bare: the HTTP client against the simulator', '-', '-', bare, 1],
        ],
      );
      printTable(
        'CPU time, µs a message',
        on.platform.services.map((service) => service.name),
        [on.platform.services.map((service, index) => ((usageOf(service.pid!)!.cpuSeconds - before[index]!) / count) * 1e6)],
      );
    },
  );
}

/** Calls a second of a loop that does nothing else, over as many connections. */
async function bareCalls(on: Installation, calls: number): Promise<number> {
  const pool = new Pool(on.simulator.url, { connections: 64, pipelining: 1 });
  const path = `/v25.0/${on.numbers[0]!.phoneNumberId}/messages`;
  const headers = { authorization: 'Bearer token-of-tests', 'content-type': 'application/json' };
  const body = JSON.stringify({
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: '+12025550110',
    type: 'text',
    text: { body: 'Hello from the test' },
  });
  let left = calls;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (left-- > 0) await (await pool.request({ method: 'POST', path, headers, body })).body.dump();
    }),
  );
  const perSecond = (calls * 1_000) / (performance.now() - began);
  await pool.close();
  return perSecond;
}
