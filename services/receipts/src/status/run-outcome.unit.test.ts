import { countsOfEvent, endedOf, outcomeOf, runStatusOf, type RunCount } from './run-outcome';

const counts = (...list: Array<[RunCount['status'], number, string?]>): RunCount[] =>
  list.map(([status, count, reason]) => ({ status, reason: reason ?? null, count }));

it.each([
  ['everything went out', counts(['delivered', 3], ['sent', 1], ['submitted', 1]), 'succeeded'],
  ['the customer cancelled the rest', counts(['delivered', 3], ['cancelled', 9, 'cancelled']), 'succeeded'],
  ['the customer suppressed some', counts(['read', 3], ['refused', 2, 'suppressed']), 'succeeded'],
  ['some failed', counts(['delivered', 3], ['failed', 1, 'recipient_unreachable']), 'partly_failed'],
  ['some expired', counts(['delivered', 3], ['expired', 1, 'expired']), 'partly_failed'],
  ['some were lost by us', counts(['delivered', 3], ['refused', 1, 'internal']), 'partly_failed'],
  ['nobody knows of some', counts(['delivered', 3], ['unconfirmed', 1]), 'partly_failed'],
  ['none was accepted', counts(['failed', 3, 'template_parameters'], ['cancelled', 1, 'cancelled']), 'failed'],
  ['all was cancelled', counts(['cancelled', 3, 'cancelled']), 'succeeded'],
] as const)('%s', (_, given, outcome) => expect(outcomeOf(given)).toBe(outcome));

it('counts what can not be sent any more', () => {
  expect(
    endedOf(counts(['submitted', 1], ['unconfirmed', 2], ['uncertain', 4], ['waiting', 8, 'retry'], ['expired', 16, 'expired'])),
  ).toBe(19);
});

it('tells counts that add up to the total', () => {
  expect(countsOfEvent(counts(['failed', 1, 'a'], ['failed', 2, 'b'], ['sent', 0], ['waiting', 1, 'retry']), 10)).toEqual({
    failed: 3,
    waiting: 1,
    scheduled: 6,
  });
});

it('says where a run is', () => {
  expect(runStatusOf({ completed: false, cancelled: false, started: false })).toBe('scheduled');
  expect(runStatusOf({ completed: false, cancelled: false, started: true })).toBe('running');
  expect(runStatusOf({ completed: true, cancelled: false, started: true })).toBe('completed');
  expect(runStatusOf({ completed: true, cancelled: true, started: true })).toBe('cancelled');
});
