import { waitUntil } from '#runtime/wait-until';
import type { Message, TimelineEntry } from '../tools/demo/src/api-answers';
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

describe('the main job', () => {
  let on: Installation;
  beforeAll(async () => {
    on = await startInstallation({ rates: [200, 50] });
  });
  afterAll(async () => {
    await on?.stop();
  });

  it('takes a campaign from a file to delivered, each recipient once', async () => {
    const people = recipients(600);
    const audienceId = await upload(on.api, people);
    const { runId } = await schedule(on.api, on.numbers[0]!, { audienceId }, { content: { text: 'Hello {{name}}' } });
    const run = await untilSettled(on.api, runId);
    expect(sumOf(run.counts)).toBe(600);
    expect((run.counts.delivered ?? 0) + (run.counts.read ?? 0)).toBe(600);
    expect(run).toMatchObject({ status: 'completed', outcome: 'succeeded', total: 600 });
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    expect(counts.size).toBe(600);
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
    const [request] = await on.simulator.control.requests({ phoneNumberId: on.numbers[0]!.phoneNumberId, limit: 1 });
    expect((request!.body as { text: { body: string } }).text.body).toMatch(/^Hello Person \d+$/);
  });

  it('tells the story of one message, and every message is found by its id', async () => {
    const created = await schedule(on.api, on.numbers[1]!, { recipients: [{ to: '+12025550182', ref: 'customer-1' }] });
    const { recipients: results } = created as unknown as { recipients: Array<{ messageId: string }> };
    const { messageId } = results[0]!;
    expect(await on.api.get(`/v1/messages/${messageId}`)).toMatchObject({ id: messageId, ref: 'customer-1' });
    const read = await waitUntil('the message to be read', async () => {
      const message = await on.api.get<Message>(`/v1/messages/${messageId}`);
      return message.status === 'read' ? message : null;
    });
    expect(read).toMatchObject({ final: true, reachedProvider: 'yes', attempts: 1 });
    const { data } = await on.api.get<{ data: TimelineEntry[] }>(`/v1/messages/${messageId}/timeline`);
    const instants = data.map((entry) => entry.at);
    expect(instants).toEqual([...instants].sort());
    expect(data.length).toBeGreaterThanOrEqual(5);
  });

  it('never starts early', async () => {
    const at = new Date(Date.now() + 2_500).toISOString();
    const { runId } = await schedule(on.api, on.numbers[1]!, { recipients: [{ to: '+13125550110' }] }, { when: { at } });
    await untilSettled(on.api, runId);
    const [delivery] = await on.simulator.control.deliveries({ recipient: '13125550110' });
    expect(delivery!.wallMicros / 1000).toBeGreaterThanOrEqual(Date.parse(at));
  });

  it('tries again what is known as not sent, and says why what failed failed', async () => {
    const retry = { delays: ['PT0.5S', 'PT0.5S'] };
    const people = ['60', '62', '61', '57', '50'].map((digits) => ({ to: `+120655501${digits}` }));
    const { runId } = await schedule(on.api, on.numbers[1]!, { recipients: people }, { retry });
    await untilSettled(on.api, runId);
    const messages = await messagesOf(on.api, runId);
    expect(messages.map((message) => [message.status, message.attempts, message.error?.code ?? null])).toEqual([
      [expect.stringMatching(/delivered|read/), 2, null],
      [expect.stringMatching(/delivered|read/), 3, null],
      ['failed', 3, 'provider_unavailable'],
      ['failed', 1, expect.any(String)],
      ['failed', 1, expect.any(String)],
    ]);
  });

  it('does not repeat what may have been sent, and lets evidence decide', async () => {
    const people = ['70', '72', '74', '78', '83'].map((digits) => ({ to: `+120855501${digits}` }));
    const { runId } = await schedule(on.api, on.numbers[1]!, { recipients: people });
    await untilSettled(on.api, runId, 40_000, ['submitted']);
    const byRecipient = await messagesOf(on.api, runId);
    expect(byRecipient.map((message) => message.status)).toEqual([
      expect.stringMatching(/delivered|read/),
      expect.stringMatching(/delivered|read/),
      expect.stringMatching(/delivered|read/),
      'unconfirmed',
      'submitted',
    ]);
    for (const { to } of people) {
      expect(await on.simulator.control.recipient(to)).toMatchObject({ count: 1 });
    }
  });
});
