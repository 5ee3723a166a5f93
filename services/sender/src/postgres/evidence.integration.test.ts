import type { Events } from '#contracts/events';
import { pause } from '#runtime/pause';
import { statement } from '#runtime/postgres/sql-file';
import { dueItem, evidence, GateUnderTest, RESULTS, results } from './test-support/gate-under-test';

let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

const ATTEMPTS = statement('attempts', 'SELECT * FROM sender.attempt_public WHERE occurrence_id = $1 ORDER BY attempt');
const EVIDENCE = statement('evidence', 'SELECT attempt, kind FROM sender.evidence WHERE occurrence_id = $1 ORDER BY kind');
const sweep = () => world.gate.sweepDeadlines({ ...RESULTS, graceMs: 5_000 });

test('evidence before the answer: accepted by it, and the answer adds what only it knows', async () => {
  const schedule = await world.openSchedule();
  const item = await world.claimed(schedule);
  const first = await world.eventsOf(() => world.gate.recordEvidence([evidence(item, 'sent')]));
  expect(first).toMatchObject([
    { name: 'MessageSubmitted', event: { by: 'evidence', step: 2, attempt: 1, providerMessageId: 'wamid.EVIDENCE', waits: [] } },
  ]);
  const second = await world.eventsOf(async () => {
    expect(await world.record(results(item).accepted)).toEqual({ applied: true, state: 'accepted', step: 3 });
  });
  expect(second).toMatchObject([
    {
      name: 'MessageSubmitted',
      event: { by: 'answer', step: 3, providerMessageId: 'wamid.TEST', waits: [{ reason: 'pace', ms: 12 }] },
    },
  ]);
  // Once is enough.
  const third = await world.eventsOf(async () => {
    expect(await world.record(results(item).accepted)).toMatchObject({ applied: false });
  });
  expect(third).toEqual([]);
});

test('a provider whose clock is wrong does not say when a message was submitted', async () => {
  for (const providerAt of [1_000, 99_999_999_999_000]) {
    const before = Date.now();
    const item = await world.claimed(await world.openSchedule());
    const [told] = await world.eventsOf(() => world.gate.recordEvidence([{ ...evidence(item, 'sent'), providerAt }]));
    const { submittedAt } = told!.event as Events['MessageSubmitted'];
    expect(submittedAt).toBeGreaterThanOrEqual(before - 1);
    expect(submittedAt).toBeLessThanOrEqual(Date.now() + 1);
  }
});

test('an answer that contradicts evidence is kept with the attempt and moves nothing', async () => {
  const item = await world.claimed(await world.openSchedule());
  await world.gate.recordEvidence([evidence(item, 'delivered')]);
  const events = await world.eventsOf(async () => {
    expect(await world.record(results(item).retry)).toMatchObject({ applied: false, state: 'accepted' });
  });
  expect(events).toEqual([]);
  expect(await world.admin.rows(ATTEMPTS, [item.occurrenceId])).toMatchObject([
    { attempt: 1, outcome: 'retry', error_code: 'provider_unavailable' },
  ]);
});

test('evidence after an accepted answer says nothing new, and is not kept', async () => {
  const item = await world.claimed(await world.openSchedule());
  await world.record(results(item).accepted);
  const events = await world.eventsOf(() =>
    world.gate.recordEvidence(['sent', 'read', 'failed'].map((kind) => evidence(item, kind as 'sent'))),
  );
  expect(events).toEqual([]);
  expect(await world.admin.rows(EVIDENCE, [item.occurrenceId])).toEqual([]);
});

test('evidence that waits for an answer which is being recorded finds the claim accepted', async () => {
  const item = await world.claimed(await world.openSchedule());
  let recorded: Promise<number> | undefined;
  await world.admin.transaction(async (answer) => {
    await answer.rows(
      statement('accepting', "UPDATE sender.claim SET state = 'accepted', sweep_at = NULL WHERE occurrence_id = $1"),
      [item.occurrenceId],
    );
    recorded = world.gate.recordEvidence([evidence(item, 'sent')]);
    expect(await Promise.race([recorded, pause(100).then(() => 'waits')])).toBe('waits');
  });
  expect(await recorded).toBe(0);
  expect(await world.admin.rows(EVIDENCE, [item.occurrenceId])).toEqual([]);
});

test('evidence while the message waits for its retry ends the retry', async () => {
  const item = await world.claimed(await world.openSchedule());
  await world.record({ ...results(item).retry, nextAttemptAt: Date.now() - 1 });
  await world.gate.recordEvidence([evidence(item, 'delivered')]);
  expect(await world.waiting(item)).toBeUndefined();
  expect(await world.decideOne(item)).toEqual({ kind: 'silent', why: 'duplicate' });
});

test('evidence that only the gate sees: no second attempt', async () => {
  const item = await world.claimed(await world.openSchedule());
  await world.record({ ...results(item).retry, nextAttemptAt: Date.now() - 1 });
  // As if it had been stored by a transaction that did not settle the claim.
  await world.admin.rows(
    statement('stored', `INSERT INTO sender.evidence (occurrence_id, attempt, kind, provider_at) VALUES ($1, 1, 'sent', now())`),
    [item.occurrenceId],
  );
  const events = await world.eventsOf(async () => {
    expect(await world.decideOne(item)).toEqual({ kind: 'settled', state: 'accepted' });
  });
  expect(events).toMatchObject([{ name: 'MessageSubmitted', event: { by: 'evidence', attempt: 1 } }]);
});

test('a failed receipt while the outcome is open settles it as soon as it is uncertain, by result or by the sweeper', async () => {
  for (const becomesUncertain of ['result', 'sweeper'] as const) {
    const item = await world.claimed(await world.openSchedule());
    await world.gate.recordEvidence([evidence(item, 'failed')]);
    expect(await world.claim(item)).toMatchObject({ state: 'sending' });
    const events = await world.eventsOf(async () => {
      if (becomesUncertain === 'result') await world.record(results(item).uncertain);
      else {
        await world.passTime(item, 20_000);
        await sweep();
      }
    });
    expect(events.map(({ name }) => name)).toEqual(['OutcomeUncertain', 'MessageFailed']);
    expect(await world.claim(item)).toMatchObject({ state: 'failed', step: 3, error_code: 'recipient_unreachable' });
  }
});

test('a failed receipt while the message waits for its retry does not end the retry', async () => {
  const item = await world.claimed(await world.openSchedule());
  await world.record({ ...results(item).retry, nextAttemptAt: Date.now() - 1 });
  expect(await world.gate.recordEvidence([evidence(item, 'failed')])).toBe(0);
  expect(await world.decideOne(item)).toMatchObject({ kind: 'claimed', attempt: 2 });
});

test('delivered wins over failed, in whatever order they come', async () => {
  for (const kinds of [
    ['failed', 'delivered'],
    ['delivered', 'failed'],
  ] as const) {
    const item = await world.claimed(await world.openSchedule());
    await world.record(results(item).uncertain);
    await world.gate.recordEvidence(kinds.map((kind) => evidence(item, kind)));
    expect(await world.claim(item)).toMatchObject({ state: 'accepted' });
  }
});

test('evidence that names no attempt counts for the latest one', async () => {
  const schedule = await world.openSchedule();
  const item = await world.claimed(schedule);
  await world.record({ ...results(item).retry, nextAttemptAt: Date.now() - 1 });
  await world.decideOne(item);
  await world.record(results(item, 2).uncertain);
  await world.gate.recordEvidence([evidence(item, 'failed', 0)]);
  expect(await world.claim(item)).toMatchObject({ state: 'failed', attempt: 2 });
  expect(await world.admin.rows(EVIDENCE, [item.occurrenceId])).toEqual([{ attempt: 2, kind: 'failed' }]);
});

test('evidence for a message that the gate does not know is kept', async () => {
  const schedule = await world.openSchedule();
  const item = dueItem(schedule);
  expect(await world.gate.recordEvidence([evidence(item, 'sent', 1), evidence(item, 'sent', 1)])).toBe(0);
  expect(await world.admin.rows(EVIDENCE, [item.occurrenceId])).toEqual([{ attempt: 1, kind: 'sent' }]);
});

test('the late result of an attempt after the next claim is only recorded', async () => {
  const item = await world.claimed(await world.openSchedule({ onUncertain: 'resend' }));
  await world.passTime(item, 20_000);
  await sweep();
  await world.passTime(item, 60_000);
  expect(await world.decideOne(item)).toMatchObject({ kind: 'claimed', attempt: 2 });
  const events = await world.eventsOf(async () => {
    expect(await world.record(results(item, 1).failed)).toEqual({ applied: false, state: 'sending', step: 3 });
  });
  expect(events).toEqual([]);
  expect(await world.admin.rows(ATTEMPTS, [item.occurrenceId])).toMatchObject([
    { attempt: 1, outcome: 'failed' },
    { attempt: 2, outcome: null },
  ]);
});

test('a final answer of the gate ends the resend and leaves the uncertainty to evidence', async () => {
  const schedule = await world.openSchedule({ onUncertain: 'resend' });
  const item = await world.claimed(schedule);
  await world.record(results(item).uncertain);
  await world.changeGate(schedule, 'cancel');
  await world.passTime(item, 80_000);
  const events = await world.eventsOf(async () => {
    expect(await world.decideOne(item)).toEqual({
      kind: 'final',
      status: 'cancelled',
      reason: 'cancelled',
      afterUncertain: true,
    });
  });
  expect(events).toMatchObject([{ name: 'MessageRefused', event: { status: 'cancelled', afterUncertain: true, step: 3 } }]);
  expect(await world.claim(item)).toMatchObject({ state: 'uncertain', next_attempt_at: null });
  expect(await world.waiting(item)).toBeUndefined();
  await world.gate.recordEvidence([evidence(item, 'delivered')]);
  expect(await world.claim(item)).toMatchObject({ state: 'accepted', step: 4 });
});
