import { waitUntil } from '#runtime/wait-until';
import type { CancelReceipt, Message } from '../tools/demo/src/api-answers';
import {
  messagesOf,
  received,
  recipients,
  schedule,
  startInstallation,
  sumOf,
  untilSettled,
  type Installation,
} from './support/installation';
import { contradictions } from './support/oracle';

const settledStatuses = ['scheduled', 'waiting', 'sending', 'submitted', 'sent'];

describe('changes in the middle of sending', () => {
  let on: Installation;
  beforeAll(async () => {
    on = await startInstallation({ rates: [300], instances: { scheduler: 2 } });
  });
  afterAll(async () => {
    await on?.stop();
  });

  it('a cancel says what it prevented, and nothing of that is sent', async () => {
    for (let round = 0; round < 12; round++) {
      await on.simulator.control.reset();
      const people = recipients(150, round * 150).map((to) => ({ to }));
      const { id, runId } = await schedule(on.api, on.numbers[0]!, { recipients: people });
      const enough = round * 10;
      await waitUntil('some of it to be out', async () => (await on.simulator.control.summary()).deliveries >= enough, {
        everyMs: 5,
      });
      const receipt = await on.api.post<CancelReceipt>(`/v1/schedules/${id}/cancel`);
      const { total, prevented, inFlight, submitted, uncertain, ended } = receipt;
      expect(prevented + inFlight + submitted + uncertain + ended).toBe(total);
      expect(await on.api.post(`/v1/schedules/${id}/cancel`)).toEqual(receipt);
      const run = await untilSettled(on.api, runId, 20_000);
      expect(sumOf(run.counts)).toBe(150);
      // A claim that was in flight may still turn out as not written; then it ends with the cancel instead of going again.
      const cancelled = run.counts.cancelled ?? 0;
      expect(cancelled).toBeGreaterThanOrEqual(prevented);
      expect(cancelled).toBeLessThanOrEqual(prevented + inFlight);
      const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
      expect(counts.size).toBe(150 - cancelled);
      expect(contradictions(await messagesOf(on.api, runId), counts)).toEqual([]);
    }
  });

  it('a message cancelled by name is not sent, or its cancel says it was too late', async () => {
    await on.simulator.control.reset();
    const people = recipients(120, 2_000).map((to) => ({ to }));
    const created = await schedule(on.api, on.numbers[0]!, { recipients: people });
    const { recipients: results } = created as unknown as { recipients: Array<{ messageId: string }> };
    const answers = await Promise.all(
      results.map(({ messageId }) =>
        on.api.post<Message>(`/v1/messages/${messageId}/cancel`).then(
          () => 'cancelled' as const,
          (error: { status: number }) => {
            expect(error.status).toBe(409);
            return 'too_late' as const;
          },
        ),
      ),
    );
    await untilSettled(on.api, created.runId, 20_000);
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    answers.forEach((answer, index) => {
      expect([answer, counts.get(people[index]!.to.slice(1)) ?? 0]).toEqual([answer, answer === 'cancelled' ? 0 : 1]);
    });
  });

  it('pause holds, resume goes on, and each recipient still gets it once', async () => {
    await on.simulator.control.reset();
    const people = recipients(400, 2_200).map((to) => ({ to }));
    const { id, runId } = await schedule(on.api, on.numbers[0]!, { recipients: people });
    await waitUntil('some of it to be out', async () => (await on.simulator.control.summary()).deliveries >= 60, { everyMs: 5 });
    await on.api.post(`/v1/schedules/${id}/pause`, { reason: 'look again' });
    const held = await waitUntil('what is not held to have arrived', async () => {
      const { counts } = await on.api.get<{ counts: Record<string, number> }>(`/v1/runs/${runId}`);
      const { deliveries } = await on.simulator.control.summary();
      const open = settledStatuses.slice(2).some((status) => (counts[status] ?? 0) > 0);
      return !open && (counts.scheduled ?? 0) + (counts.waiting ?? 0) === 400 - deliveries ? deliveries : null;
    });
    expect(held).toBeLessThan(400);
    expect((await on.api.get<Message>(`/v1/runs/${runId}`)).status).toBe('running');
    expect((await on.simulator.control.summary()).deliveries).toBe(held);
    await on.api.post(`/v1/schedules/${id}/resume`);
    await untilSettled(on.api, runId, 20_000);
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    expect([counts.size, Math.max(...counts.values())]).toEqual([400, 1]);
  });

  it('a revision changes what is not claimed yet, and nobody gets both texts', async () => {
    await on.simulator.control.reset();
    const people = recipients(300, 2_700).map((to) => ({ to }));
    const { id, runId } = await schedule(on.api, on.numbers[0]!, { recipients: people }, { content: { text: 'first text' } });
    await waitUntil('some of it to be out', async () => (await on.simulator.control.summary()).deliveries >= 60, { everyMs: 5 });
    await on.api.patch(`/v1/schedules/${id}`, { content: { text: 'second text' } }, { 'if-match': '"1"' });
    const run = await untilSettled(on.api, runId, 20_000);
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    expect([counts.size, Math.max(...counts.values()), run.counts]).toEqual([300, 1, expect.anything()]);
    const requests = await on.simulator.control.requests({ limit: 250 });
    const texts = new Set(requests.map((request) => (request.body as { text: { body: string } }).text.body));
    expect(texts).toContain('second text');
    const messages = (await messagesOf(on.api, runId)) as Array<Message & { revision: number }>;
    expect(new Set(messages.map((message) => message.revision))).toEqual(new Set([1, 2]));
  });
});
