import { dueItem, GateUnderTest, OPTIONS } from './test-support/gate-under-test';

let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

test('a due message is claimed once, whoever asks again', async () => {
  const schedule = await world.openSchedule({ onUncertain: 'resend', retryDelaysMs: [1000, 2000] });
  const item = dueItem(schedule, { position: 7, validUntil: Date.now() + 60_000 });
  const before = Date.now();
  const [first, again] = await world.gate.decide([item, item], OPTIONS);
  expect(first).toEqual({
    kind: 'claimed',
    attempt: 1,
    step: 1,
    revision: 1,
    retriesUsed: 0,
    deadlineAt: expect.any(Number),
    tenantId: schedule.tenantId,
    mode: 'test',
    onUncertain: 'resend',
    retryDelaysMs: [1000, 2000],
  });
  expect((first as { deadlineAt: number }).deadlineAt - before).toBeGreaterThan(9_000);
  expect(again).toEqual({ kind: 'silent', why: 'duplicate' });
  expect(await world.decideOne(item)).toEqual({ kind: 'silent', why: 'duplicate' });
  expect(await world.claim(item)).toMatchObject({ state: 'sending', attempt: 1, step: 1 });
});
