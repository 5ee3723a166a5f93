import type { AttemptResult } from './gate-port';
import { dueItem, GateUnderTest, OPTIONS, RESULTS, results, type TestSchedule } from './test-support/gate-under-test';

/** A run whose first ten outcomes are all wrong template parameters is held. */
let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

type Outcome = 'wrong' | 'unreachable' | 'accepted' | 'retry';

async function play(schedule: TestSchedule, outcomes: Outcome[], revision = 1) {
  const items = outcomes.map((_, position) => dueItem(schedule, { position, revision }));
  return world.eventsOf(async () => {
    await world.gate.decide(items, OPTIONS);
    await world.gate.recordResults(
      items.map((item, index): AttemptResult => {
        const given = results(item);
        switch (outcomes[index]!) {
          case 'wrong':
            return { ...given.failed, code: 'template_parameters' };
          case 'unreachable':
            return given.failed;
          case 'accepted':
            return given.accepted;
          case 'retry':
            return given.retry;
        }
      }),
      RESULTS,
    );
  });
}
const times = (count: number, outcome: Outcome) => Array<Outcome>(count).fill(outcome);
const held = (events: Array<{ name: string }>) => events.filter(({ name }) => name === 'RunHeld');

test('ten wrong ones hold the run, told once, until it is resumed', async () => {
  const schedule = await world.openSchedule();
  expect(held(await play(schedule, [...times(6, 'wrong'), 'retry']))).toEqual([]);
  const events = held(await play(schedule, times(6, 'wrong')));
  expect(events).toMatchObject([{ name: 'RunHeld', event: { reason: 'template', runId: schedule.runId } }]);

  const item = dueItem(schedule);
  expect(await world.decideOne(item)).toMatchObject({ kind: 'held', reason: 'template' });
  await world.changeGate(schedule, 'resume');
  expect(await world.decideOne(item)).toMatchObject({ kind: 'claimed' });
  expect(held(await play(schedule, times(12, 'wrong')))).toEqual([]);
});

test('one outcome of another kind among the first ten is enough to go on', async () => {
  for (const other of ['accepted', 'unreachable'] as const) {
    const schedule = await world.openSchedule();
    await play(schedule, [...times(9, 'wrong'), other]);
    expect(held(await play(schedule, times(20, 'wrong')))).toEqual([]);
    expect(await world.decideOne(dueItem(schedule))).toMatchObject({ kind: 'claimed' });
  }
});

test('a revision is judged by its own first ten', async () => {
  const schedule = await world.openSchedule();
  await play(schedule, times(10, 'accepted'));
  await world.revise(schedule, 2);
  expect(held(await play(schedule, times(10, 'wrong'), 2))).toHaveLength(1);
});
