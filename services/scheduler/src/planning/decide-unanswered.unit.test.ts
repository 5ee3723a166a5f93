import { decideUnanswered, type UnansweredDecision, type UnansweredRun } from './decide-unanswered';

const run: UnansweredRun = { gateStatus: 'active', expired: false, releasesAgain: 0 };

it.each<[string, Partial<UnansweredRun>, UnansweredDecision]>([
  ['is released again', {}, { kind: 'release_again' }],
  ['is released again a third time', { releasesAgain: 2 }, { kind: 'release_again' }],
  ['is refused after the third', { releasesAgain: 3 }, { kind: 'refuse', status: 'refused', reason: 'internal' }],
  ['is released again while paused: the release waits for the resume', { gateStatus: 'paused' }, { kind: 'release_again' }],
  [
    'ends as cancelled with its schedule',
    { gateStatus: 'cancelled', expired: true },
    { kind: 'refuse', status: 'cancelled', reason: 'cancelled' },
  ],
  [
    'ends as expired after its validity',
    { expired: true, releasesAgain: 3 },
    { kind: 'refuse', status: 'expired', reason: 'expired' },
  ],
  ['is refused where there is no gate to ask', { gateStatus: null }, { kind: 'refuse', status: 'refused', reason: 'internal' }],
])('%s', (_name, change, expected) => {
  expect(decideUnanswered({ ...run, ...change })).toEqual(expected);
});
