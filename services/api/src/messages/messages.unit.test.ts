import fc from 'fast-check';
import { CLAIM_STATES, MESSAGE_ERRORS, MESSAGE_STATUSES, type ClaimState, type MessageStatus } from '#contracts/words';
import { adviceFor } from './error-advice';
import { maskNumber } from './mask-number';
import { mergeMessage } from './merge-message';
import type { ClaimFact, MessageFacts, ProjectedFact, ScheduleFacts } from './message-facts';
import { countRun } from './run-view';

const schedule: ScheduleFacts = { cancelled: false, pausedSinceMs: null, dueAtMs: 1_000, nowMs: 2_000, evidenceEnded: false };
const nothing: MessageFacts = { claim: null, waiting: null, projected: null, range: null };
const claim = (state: ClaimState, step: number, more: Partial<ClaimFact> = {}): ClaimFact => ({
  state,
  step,
  attempt: 1,
  reason: null,
  errorCode: null,
  nextAttemptAtMs: null,
  providerMessageId: null,
  updatedAtMs: 1_500,
  wasUncertain: false,
  ...more,
});
const projected = (status: MessageStatus, step: number | null, more: Partial<ProjectedFact> = {}): ProjectedFact => ({
  status,
  step,
  revision: 1,
  reason: null,
  waiting: null,
  attempts: 1,
  submittedAtMs: null,
  sentAtMs: null,
  deliveredAtMs: null,
  readAtMs: null,
  failedAtMs: null,
  error: null,
  providerMessageId: null,
  waits: [],
  ...more,
});
const merge = (facts: Partial<MessageFacts>, more: Partial<ScheduleFacts> = {}) =>
  mergeMessage({ ...nothing, ...facts }, { ...schedule, ...more });

describe('a message of which nobody knows anything', () => {
  it('is scheduled, or cancelled with its schedule, and says that it is paused once it is due', () => {
    expect(merge({})).toMatchObject({ status: 'scheduled', final: false, reachedProvider: 'no', waitingFor: null });
    expect(merge({}, { cancelled: true })).toMatchObject({ status: 'cancelled', final: true, reachedProvider: 'no' });
    expect(merge({}, { pausedSinceMs: 500 }).waitingFor).toMatchObject({ reason: 'paused', sinceMs: 1_000 });
    expect(merge({}, { pausedSinceMs: 500, nowMs: 900 }).waitingFor).toBeNull();
  });

  it('has the end of its range', () => {
    const range = { status: 'expired' as const, reason: 'expired', atMs: 5 };
    expect(merge({ range }, { cancelled: true })).toMatchObject({ status: 'expired', final: true });
    expect(merge({ range, claim: claim('accepted', 2) }).status).toBe('submitted');
  });
});

describe('the gate and the read model', () => {
  it.each<[ClaimState, number, MessageStatus, number | null, MessageStatus]>([
    ['sending', 1, 'waiting', 0, 'sending'],
    ['accepted', 2, 'submitted', 2, 'submitted'],
    ['accepted', 4, 'waiting', 2, 'submitted'],
    ['retry_wait', 2, 'submitted', null, 'waiting'],
    ['accepted', 2, 'failed', 2, 'failed'],
    ['accepted', 2, 'failed', null, 'failed'],
    ['sending', 3, 'delivered', null, 'delivered'],
    ['uncertain', 2, 'read', 1, 'read'],
    ['uncertain', 2, 'unconfirmed', 3, 'unconfirmed'],
    ['failed', 4, 'uncertain', 3, 'failed'],
  ])('claim %s at step %d and %s at step %p is %s', (state, step, status, projectedStep, expected) => {
    expect(merge({ claim: claim(state, step), projected: projected(status, projectedStep) }).status).toBe(expected);
  });

  it('drop a hold that the sender has ended', () => {
    const held = projected('waiting', 0, {
      waiting: { reason: 'account', sinceMs: 1, wakeAtMs: null, givesUpAtMs: null },
      reason: 'account',
    });
    const waiting = { reason: 'account', sinceMs: 1, wakeAtMs: 9, givesUpAtMs: 10 };
    expect(merge({ projected: held, waiting })).toMatchObject({ status: 'waiting', waitingFor: waiting });
    expect(merge({ projected: held })).toMatchObject({ status: 'scheduled', waitingFor: null });
  });

  it('show why and until when a retry waits', () => {
    const answer = merge({ claim: claim('retry_wait', 2, { nextAttemptAtMs: 9_000, errorCode: 'provider_unavailable' }) });
    expect(answer).toMatchObject({
      status: 'waiting',
      waitingFor: { reason: 'retry', wakeAtMs: 9_000 },
      nextAttemptAtMs: 9_000,
      errorCode: 'provider_unavailable',
    });
  });

  it('say maybe where an attempt may have got through', () => {
    expect(merge({ claim: claim('cancelled', 4, { wasUncertain: true, attempt: 2 }) }).reachedProvider).toBe('maybe');
    expect(merge({ claim: claim('cancelled', 4) }).reachedProvider).toBe('no');
    expect(merge({ claim: claim('uncertain', 2) })).toMatchObject({ reachedProvider: 'maybe', final: false });
    expect(merge({ projected: projected('failed', 2, { submittedAtMs: 5 }) }).reachedProvider).toBe('yes');
  });

  it('call accepted messages final only when late evidence is no longer usual', () => {
    expect(merge({ claim: claim('accepted', 2) }).final).toBe(false);
    expect(merge({ claim: claim('accepted', 2) }, { evidenceEnded: true }).final).toBe(true);
  });

  it('never show less than the higher step, unless there is positive evidence', () => {
    const fact = fc.record({ state: fc.constantFrom(...CLAIM_STATES), step: fc.integer({ min: 1, max: 9 }) });
    const row = fc.record({ status: fc.constantFrom(...MESSAGE_STATUSES), step: fc.option(fc.integer({ min: 0, max: 9 })) });
    fc.assert(
      fc.property(fact, row, (gate, model) => {
        const { status } = merge({ claim: claim(gate.state, gate.step), projected: projected(model.status, model.step) });
        const alone = merge({ claim: claim(gate.state, gate.step) }).status;
        if (['sent', 'delivered', 'read'].includes(model.status)) expect(status).toBe(model.status);
        else if (gate.step <= (model.step ?? -1)) expect(status).toBe(model.status);
        else if (!(model.status === 'failed' && gate.state === 'accepted')) expect(status).toBe(alone);
      }),
    );
  });
});

describe('the counts of a run', () => {
  it('always add up to the total, whatever the parts say', () => {
    const part = fc.record({
      status: fc.constantFrom(...MESSAGE_STATUSES),
      reason: fc.constant(null),
      count: fc.integer({ min: 0, max: 3_000 }),
    });
    fc.assert(
      fc.property(
        fc.nat(5_000),
        fc.array(part, { maxLength: 8 }),
        fc.nat(3_000),
        fc.nat(3_000),
        (total, counted, sending, waiting) => {
          const counts = countRun(total, { counted, sending, waiting });
          expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(total);
          expect(Object.values(counts).every((count) => count >= 0)).toBe(true);
        },
      ),
    );
  });

  it('let a live count give way to the read model, which knows better', () => {
    const counts = countRun(10, { counted: [{ status: 'delivered', reason: null, count: 9 }], sending: 2, waiting: 1 });
    expect(counts).toMatchObject({ delivered: 9, sending: 1, waiting: 0, scheduled: 0 });
  });
});

it('masks numbers so that they can be recognised and not called', () => {
  expect(maskNumber('+4915123456789')).toBe('+49151******89');
  fc.assert(
    fc.property(fc.stringMatching(/^\+[1-9]\d{6,14}$/), (number) => {
      const masked = maskNumber(number);
      expect(masked).toHaveLength(number.length);
      expect(masked.split('*').length - 1).toBeGreaterThanOrEqual(3);
    }),
  );
});

it('has advice for every error', () => {
  for (const code of MESSAGE_ERRORS) expect(adviceFor(code).action).not.toBe('');
  expect(adviceFor('toString')).toEqual(adviceFor('unheard_of'));
});
