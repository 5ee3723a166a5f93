import {
  ask,
  NOTHING_KNOWN,
  recordEvidence,
  recordResult,
  sweep,
  type GateFacts,
  type Message,
  type Question,
} from './gate-rules';

const T0 = 1_800_000_000_000;
const WINDOWS = { graceMs: 5_000, evidenceWindowMs: 900_000, resendAfterMs: 60_000 };
const gate: GateFacts = { status: 'active', revision: 3, runHeld: false, onUncertain: 'leave', holdGiveUpMs: 604_800_000 };
const question: Question = {
  revision: 3,
  dueAt: T0,
  validUntil: null,
  suppressed: false,
  numberHold: null,
  deadlineMs: 10_000,
  now: T0,
};
const claimed = (): Message => ask(NOTHING_KNOWN, gate, question).message;

test.each([
  ['a due message', {}, {}, { kind: 'claimed', attempt: 1, step: 1, revision: 3 }],
  ['another revision', {}, { revision: 2 }, { kind: 'silent', why: 'superseded' }],
  ['another revision of a cancelled schedule', { status: 'cancelled' }, { revision: 2 }, { kind: 'silent', why: 'superseded' }],
  ['a cancelled schedule', { status: 'cancelled' }, {}, { kind: 'final', status: 'cancelled' }],
  ['cancelled and expired', { status: 'cancelled' }, { validUntil: T0 }, { kind: 'final', status: 'cancelled' }],
  ['a validity that ends now', {}, { validUntil: T0 }, { kind: 'final', status: 'expired' }],
  ['suppressed and paused', { status: 'paused' }, { suppressed: true }, { kind: 'final', status: 'refused' }],
  ['paused', { status: 'paused' }, { dueAt: T0 + 1 }, { kind: 'held', reason: 'paused' }],
  ['a held run', { runHeld: true }, {}, { kind: 'held', reason: 'template' }],
  ['a held number', {}, { numberHold: { reason: 'account', until: null } }, { kind: 'held', reason: 'account' }],
  ['a millisecond early', {}, { dueAt: T0 + 1 }, { kind: 'held', reason: 'not_yet' }],
] as const)('%s', (_, gateChange, questionChange, answer) => {
  expect(ask(NOTHING_KNOWN, { ...gate, ...gateChange }, { ...question, ...questionChange } as Question).answer).toMatchObject(
    answer,
  );
});

test('a claimed message is a duplicate, and a retry goes on under its own revision', () => {
  const sending = claimed();
  expect(ask(sending, gate, question).answer).toEqual({ kind: 'silent', why: 'duplicate' });
  const retry = { attempt: 1, outcome: 'retry', nextAttemptAt: T0 + 120_000, usesRetry: true, reason: 'retry' } as const;
  const { message } = recordResult(sending, gate, retry, WINDOWS, T0);
  const revised = { ...gate, revision: 4 };
  expect(ask(message, revised, { ...question, now: T0 + 119_999 }).answer).toEqual({ kind: 'held', reason: 'retry' });
  expect(ask(message, revised, { ...question, now: T0 + 120_000 }).answer).toMatchObject({
    kind: 'claimed',
    attempt: 2,
    revision: 3,
  });
});

test('nobody reports: uncertain after deadline and grace, unconfirmed after the evidence window', () => {
  const sending = claimed();
  expect(sweep(sending, gate, WINDOWS, T0 + 14_999)).toBe(sending);
  const uncertain = sweep(sending, gate, WINDOWS, T0 + 15_000);
  expect(uncertain.claim).toMatchObject({ state: 'uncertain', nextAttemptAt: null });
  expect(sweep(uncertain, gate, WINDOWS, T0 + 914_999)).toBe(uncertain);
  expect(sweep(uncertain, gate, WINDOWS, T0 + 915_000).claim).toMatchObject({ state: 'unconfirmed' });
});

test('a resend comes 60 s after the deadline, and not if there is evidence', () => {
  const resend: GateFacts = { ...gate, onUncertain: 'resend' };
  const uncertain = sweep(claimed(), resend, WINDOWS, T0 + 15_000);
  expect(ask(uncertain, resend, { ...question, now: T0 + 69_999 }).answer).toEqual({ kind: 'held', reason: 'retry' });
  expect(ask(uncertain, resend, { ...question, now: T0 + 70_000 }).answer).toMatchObject({ kind: 'claimed', attempt: 2 });
  const { claim, waiting } = recordEvidence(uncertain, { attempt: 1, kind: 'sent' });
  expect([claim!.state, waiting]).toEqual(['accepted', null]);
});
