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
      expect(run.counts.cancelled ?? 0).toBe(prevented);
      const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
      expect(counts.size).toBe(150 - prevented);
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
    const quiet = await waitUntil('nothing to be under way', async () => {
      const { counts } = await on.api.get<{ counts: Record<string, number> }>(`/v1/runs/${runId}`);
      return settledStatuses.slice(2).every((status) => (counts[status] ?? 0) === 0) ? counts : null;
    });
    const held = (await on.simulator.control.summary()).deliveries;
    expect((quiet.scheduled ?? 0) + (quiet.waiting ?? 0)).toBe(400 - held);
    expect(held).toBeLessThan(400);
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
    await untilSettled(on.api, runId, 20_000);
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    expect([counts.size, Math.max(...counts.values())]).toEqual([300, 1]);
    const requests = await on.simulator.control.requests({ limit: 250 });
    const texts = new Set(requests.map((request) => (request.body as { text: { body: string } }).text.body));
    expect(texts).toContain('second text');
    const messages = (await messagesOf(on.api, runId)) as Array<Message & { revision: number }>;
    expect(new Set(messages.map((message) => message.revision))).toEqual(new Set([1, 2]));
  });
});
