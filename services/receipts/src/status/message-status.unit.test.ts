import fc from 'fast-check';
import {
  addsNothing,
  factsOfEvidence,
  factsOfOwn,
  mergeFacts,
  nothingKnown,
  type EvidenceFact,
  type MessageFacts,
  type OwnFact,
} from './message-facts';
import { statusOf } from './message-status';

const DUE = 1_000_000;
const base = { position: 7, revision: 1, dueAt: DUE };
const error = { code: 'provider_unavailable', providerCode: '131016', text: null };

const held = (step = 0, at = DUE + 10, reason = 'paused') =>
  factsOfOwn({ ...base, kind: 'held', step, at, reason, since: at, until: null, givesUpAt: at + 99 });
const retry = (step = 2, attempt = 1) =>
  factsOfOwn({ ...base, kind: 'retry', step, at: DUE + 20, attempt, until: DUE + 999, error });
const submitted = (step = 2, attempt = 1) =>
  factsOfOwn(
    { ...base, kind: 'submitted', step, at: DUE + 30, attempt },
    { step, attempt, at: DUE + 30, calledAt: DUE + 25, waits: [] },
    `wamid.${attempt}`,
  );
const failed = (step = 2, attempt = 1, reachedProvider = true) =>
  factsOfOwn({ ...base, kind: 'failed', step, at: DUE + 40, attempt, reachedProvider, error });
const uncertain = (step = 2, attempt = 1) =>
  factsOfOwn({ ...base, kind: 'uncertain', step, at: DUE + 50, attempt, reason: 'deadline', since: DUE + 50, until: DUE + 900 });
const unconfirmed = (step = 3, attempt = 1) => factsOfOwn({ ...base, kind: 'unconfirmed', step, at: DUE + 60, attempt });
const refused = (step = 1, afterUncertain = false) =>
  factsOfOwn({ ...base, kind: 'refused', step, at: DUE + 15, status: 'cancelled', reason: 'cancelled', afterUncertain });
const evidence = (kind: EvidenceFact['kind'], attempt = 1, at = DUE + 100, recordedAt = at + 900) =>
  factsOfEvidence({
    kind,
    attempt,
    at,
    recordedAt,
    providerMessageId: `wamid.${attempt}`,
    error: kind === 'failed' ? { code: 'recipient_unreachable', providerCode: '131026', text: 'undeliverable' } : null,
  });
const all = (...facts: MessageFacts[]) => facts.reduce(mergeFacts, nothingKnown);
const status = (...facts: MessageFacts[]) => statusOf(all(...facts));

describe('what a sender says', () => {
  it.each([
    ['a hold', [held()], { status: 'waiting', reason: 'paused', final: false, reachedProvider: 'no' }],
    ['a later hold of the same step', [held(), held(0, DUE + 11, 'window')], { status: 'waiting', reason: 'window' }],
    [
      'a retry',
      [held(), retry()],
      { status: 'waiting', reason: 'retry', error: { ...error, at: DUE + 20 }, reachedProvider: 'no' },
    ],
    ['a retry that is paused', [retry(), held(2, DUE + 21)], { status: 'waiting', reason: 'paused' }],
    ['an acceptance', [retry(), submitted(4, 2)], { status: 'submitted', error: null, final: false, reachedProvider: 'yes' }],
    [
      'a rejection',
      [failed()],
      { status: 'failed', reason: 'provider_unavailable', final: true, reachedProvider: 'yes', failedAt: DUE + 40 },
    ],
    ['a failure that never left', [failed(2, 1, false)], { status: 'failed', reachedProvider: 'no' }],
    ['an uncertain outcome', [uncertain()], { status: 'uncertain', reason: 'deadline', final: false, reachedProvider: 'maybe' }],
    ['a window without evidence', [uncertain(), unconfirmed()], { status: 'unconfirmed', final: true, reachedProvider: 'maybe' }],
    ['a cancel', [refused()], { status: 'cancelled', reason: 'cancelled', final: true, reachedProvider: 'no' }],
    [
      'a cancel of a resend, which leaves the uncertainty',
      [uncertain(), refused(3, true)],
      { status: 'uncertain', reason: 'deadline', reachedProvider: 'maybe' },
    ],
    ['a resend that is held', [uncertain(), held(2, DUE + 55)], { status: 'uncertain', final: false, reachedProvider: 'maybe' }],
    [
      'a resend that was not sent, and then cancelled',
      [uncertain(), retry(4, 2), refused(5)],
      { status: 'cancelled', reachedProvider: 'maybe' },
    ],
  ] as const)('%s', (_, facts, expected) => expect(status(...facts)).toMatchObject(expected));
});

describe('what a provider says', () => {
  it.each([
    ['sent', [submitted(), evidence('sent')], { status: 'sent', correction: false }],
    ['held for quality', [submitted(), evidence('held')], { status: 'submitted' }],
    ['delivered without sent', [submitted(), evidence('delivered')], { status: 'delivered', final: true, correction: false }],
    ['read without delivered', [submitted(), evidence('read')], { status: 'read', final: true }],
    ['played is read', [submitted(), evidence('played')], { status: 'read' }],
    [
      'failed after sent',
      [submitted(), evidence('sent'), evidence('failed')],
      { status: 'failed', reason: 'recipient_unreachable', failedAt: DUE + 100 },
    ],
    ['sent after failed', [submitted(), evidence('failed'), evidence('sent')], { status: 'failed' }],
    [
      'delivered beats failed',
      [submitted(), evidence('failed'), evidence('delivered')],
      { status: 'delivered', correction: true, failedAt: DUE + 100 },
    ],
    ['before the sender said anything', [evidence('sent')], { status: 'sent' }],
    ['evidence settles what is uncertain', [uncertain(), evidence('sent')], { status: 'sent', reachedProvider: 'yes' }],
    ['evidence of failure too', [uncertain(), evidence('failed')], { status: 'failed', reachedProvider: 'yes' }],
    ['also when its resend was cancelled', [uncertain(), refused(3, true), evidence('failed')], { status: 'failed' }],
    ['and what was given up', [uncertain(), unconfirmed(), evidence('delivered')], { status: 'delivered', correction: true }],
    ['sent, though cancelled', [refused(3), evidence('sent')], { status: 'sent', correction: true, reachedProvider: 'yes' }],
    ['something unknown', [submitted(), evidence('unknown')], { status: 'submitted' }],
  ] as const)('%s', (_, facts, expected) => expect(status(...facts)).toMatchObject(expected));
});

describe('several attempts', () => {
  it.each([
    ['a failure of an earlier one does not fail the accepted', [submitted(4, 2), evidence('failed', 1)], { status: 'submitted' }],
    ['a failure of the accepted one does', [submitted(4, 2), evidence('failed', 2)], { status: 'failed' }],
    [
      'an earlier one that went through is better',
      [submitted(4, 2), evidence('sent', 1), evidence('failed', 2)],
      { status: 'sent' },
    ],
    [
      'a planned retry knows more than evidence of failure',
      [retry(2, 1), evidence('failed', 1)],
      { status: 'waiting', reason: 'retry' },
    ],
    ['evidence for the rejected attempt does not undo the rejection', [failed(2, 1), evidence('sent', 1)], { status: 'failed' }],
    [
      'but what only waited too long was not rejected',
      [retry(2, 1), failed(3, 1, false), evidence('sent', 1)],
      { status: 'sent', correction: true },
    ],
    ['evidence for another one does', [evidence('sent', 1), failed(4, 2)], { status: 'sent', correction: true }],
    ['the name of the last attempt is shown', [submitted(4, 2), evidence('sent', 1)], { status: 'sent' }],
  ] as const)('%s', (_, facts, expected) => expect(status(...facts)).toMatchObject(expected));

  it('counts the attempts that anything named', () => {
    expect(all(submitted(4, 2), evidence('sent', 1)).attempts).toBe(2);
    expect(all(submitted(4, 2), evidence('sent', 1)).provider).toEqual({ attempt: 2, id: 'wamid.2' });
  });
});

it('keeps the earliest instant of a kind of evidence, and of each attempt its first failure', () => {
  const facts = all(
    evidence('delivered', 1, DUE + 9),
    evidence('delivered', 1, DUE + 4),
    evidence('failed', 1, DUE + 8),
    evidence('failed', 1, DUE + 3),
  );
  expect(facts.deliveredAt).toBe(DUE + 4);
  expect(facts.failures.map(({ at }) => at)).toEqual([DUE + 3]);
});

describe('an instant that a provider tells', () => {
  const heard = DUE + 60_000;
  const delivered = (at: number, recordedAt = heard) => evidence('delivered', 1, at, recordedAt);
  const shown = (...facts: MessageFacts[]) => status(...facts).deliveredAt;

  it('is believed within what clocks may differ, and else shown as heard', () => {
    expect(shown(submitted(), delivered(DUE + 25))).toBe(DUE + 25);
    // A clock that is some minutes off.
    expect(shown(submitted(), delivered(DUE - 4 * 60_000))).toBe(DUE - 4 * 60_000);
    expect(shown(submitted(), delivered(heard + 4 * 60_000))).toBe(heard + 4 * 60_000);
    for (const wrong of [1_000, DUE - 6 * 60_000, heard + 6 * 60_000, 99_999_999_999_000])
      expect(shown(submitted(), delivered(wrong))).toBe(heard);
  });

  it('may be told days later', () => {
    expect(shown(submitted(), delivered(DUE + 25, DUE + 6 * 86_400_000))).toBe(DUE + 25);
  });

  it('is measured by the call of the attempt, whenever that becomes known, and before by the due time', () => {
    const late = DUE + 3_600_000;
    const called = factsOfOwn(
      { ...base, kind: 'submitted', step: 2, at: late, attempt: 1 },
      { step: 2, attempt: 1, at: late, calledAt: late, waits: [] },
    );
    const told = delivered(DUE + 60_000, late + 2_000);
    expect(status(told).deliveredAt).toBe(late + 2_000);
    expect(shown(held(), told)).toBe(DUE + 60_000);
    expect(shown(held(), told, called)).toBe(late + 2_000);
    expect(shown(called, told, held())).toBe(late + 2_000);
  });

  it('of a failure is the instant of the error too', () => {
    const wrong = status(submitted(), evidence('failed', 1, 1_000, heard));
    expect(wrong).toMatchObject({ status: 'failed', failedAt: heard, error: { at: heard } });
    expect(wrong.error).not.toHaveProperty('heardAt');
  });
});

const step = fc.integer({ min: 0, max: 4 });
const attempt = fc.integer({ min: 1, max: 3 });
const at = fc.integer({ min: DUE - 5, max: DUE + 5 });
const ownFact: fc.Arbitrary<MessageFacts> = fc
  .record({
    step,
    attempt,
    at,
    kind: fc.constantFrom('held', 'retry', 'submitted', 'failed', 'uncertain', 'unconfirmed', 'refused'),
  })
  .map(({ step, attempt, at, kind }) => {
    const own = { ...base, step, at, attempt };
    const made: Record<OwnFact['kind'], () => MessageFacts> = {
      held: () => held(step, at, `reason ${attempt}`),
      retry: () => factsOfOwn({ ...own, kind: 'retry', until: at + 9, error }),
      submitted: () =>
        factsOfOwn({ ...own, kind: 'submitted' }, { step, attempt, at, calledAt: at - 1, waits: [] }, `wamid.${attempt}`),
      failed: () => factsOfOwn({ ...own, kind: 'failed', reachedProvider: true, error }),
      uncertain: () => factsOfOwn({ ...own, kind: 'uncertain', reason: 'deadline', since: at, until: at + 9 }),
      unconfirmed: () => factsOfOwn({ ...own, kind: 'unconfirmed' }),
      refused: () =>
        factsOfOwn({ ...base, step, at, kind: 'refused', status: 'expired', reason: 'expired', afterUncertain: attempt > 1 }),
    };
    return made[kind as OwnFact['kind']]();
  });
const MINUTE = 60_000;
const YEAR_5138 = 99_999_999_999_000;
const saidEvidence: fc.Arbitrary<EvidenceFact> = fc
  .record({
    attempt,
    at: fc.oneof({ arbitrary: at, weight: 4 }, fc.constantFrom(1, DUE - 40 * MINUTE, DUE + 4 * MINUTE, YEAR_5138)),
    recordedAt: fc.constantFrom(DUE + 10, DUE + MINUTE, DUE + 3 * MINUTE, DUE + 20 * MINUTE),
    kind: fc.constantFrom('sent', 'delivered', 'read', 'failed', 'held', 'played', 'unknown'),
    code: fc.constantFrom('131026', '131049'),
  })
  .map(({ attempt, at, recordedAt, kind, code }) => ({
    kind: kind as EvidenceFact['kind'],
    attempt,
    at,
    recordedAt,
    providerMessageId: `wamid.${attempt}`,
    error: kind === 'failed' ? { code: 'recipient_unreachable', providerCode: code, text: null } : null,
  }));
const evidenceFact: fc.Arbitrary<MessageFacts> = saidEvidence.map(factsOfEvidence);
const someFacts = fc.array(fc.oneof(ownFact, evidenceFact), { minLength: 1, maxLength: 10 });

/** In order, every move of a claim with a step of its own; only holds join it there, at later instants. */
function asSendersTell(facts: MessageFacts[]): MessageFacts[] {
  const sorted = [...facts].sort((a, b) => a.own!.step - b.own!.step || a.own!.at - b.own!.at);
  return sorted.filter(({ own }, place) => {
    const before = sorted[place - 1]?.own;
    return !before || before.step < own!.step || (own!.kind === 'held' && before.at < own!.at);
  });
}

/** What a database does to a row between two merges. */
const stored = (facts: MessageFacts): MessageFacts =>
  JSON.parse(
    JSON.stringify(facts, (_, part: unknown) =>
      typeof part === 'object' && part !== null && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).reverse())
        : part,
    ),
  ) as MessageFacts;

describe('the join', () => {
  it('gives the same row for every order, repetition and batching of the same facts', () => {
    fc.assert(
      fc.property(
        someFacts.chain((facts) =>
          fc.record({
            facts: fc.constant(facts),
            again: fc.shuffledSubarray([...facts, ...facts], { minLength: 0 }),
            order: fc.shuffledSubarray(facts, { minLength: facts.length }),
            cuts: fc.array(fc.nat({ max: 20 }), { maxLength: 5 }),
          }),
        ),
        ({ facts, again, order, cuts }) => {
          const expected = all(...facts);
          const sequence = [...order, ...again];
          let row = nothingKnown;
          let batch = nothingKnown;
          sequence.forEach((fact, place) => {
            batch = mergeFacts(batch, fact);
            if (!cuts.includes(place) && place < sequence.length - 1) return;
            row = stored(mergeFacts(row, batch));
            batch = nothingKnown;
          });
          expect(row).toEqual(expected);
          expect(statusOf(row)).toEqual(statusOf(expected));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('knows when facts add nothing', () => {
    fc.assert(
      fc.property(someFacts, (facts) => {
        const row = stored(all(...facts));
        for (const fact of facts) expect(addsNothing(row, mergeFacts(row, fact))).toBe(true);
      }),
    );
  });

  it('tells a higher sequence for every status that differs from the one before, whenever evidence comes', () => {
    fc.assert(
      fc.property(
        fc.array(ownFact, { maxLength: 8 }),
        fc.array(fc.tuple(evidenceFact, fc.nat({ max: 8 })), { maxLength: 6 }),
        (own, said) => {
          const history = asSendersTell(own);
          let row = nothingKnown;
          for (let place = 0; place <= 8; place++) {
            const next = [...said.filter(([, when]) => when === place).map(([fact]) => fact), ...history.slice(place, place + 1)];
            for (const fact of next) {
              const before = statusOf(row);
              row = mergeFacts(row, fact);
              const after = statusOf(row);
              const told = (one: typeof before) => JSON.stringify([one.status, one.reason, one.waiting, one.error?.code]);
              expect(after.sequence).toBeGreaterThanOrEqual(before.sequence);
              if (row.own && told(before) !== told(after)) expect(after.sequence).toBeGreaterThan(before.sequence);
            }
          }
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('gives the same row for evidence that came again later as for what was heard first, which is what is kept', () => {
    fc.assert(
      fc.property(fc.array(saidEvidence, { maxLength: 12 }), ownFact, (said, own) => {
        const kept = new Map<string, EvidenceFact>();
        for (const one of said) {
          const key = JSON.stringify([one.attempt, one.kind, one.at, one.error?.providerCode]);
          if ((kept.get(key)?.recordedAt ?? Infinity) > one.recordedAt) kept.set(key, one);
        }
        const came = all(own, ...said.map(factsOfEvidence));
        expect(all(own, ...[...kept.values()].map(factsOfEvidence))).toEqual(came);
      }),
      { numRuns: 1_000 },
    );
  });

  it('never leaves delivered or read again', () => {
    fc.assert(
      fc.property(someFacts, ownFact, evidenceFact, (facts, own, more) => {
        const before = statusOf(all(...facts)).status;
        const after = statusOf(all(...facts, own, more)).status;
        if (before === 'read') expect(after).toBe('read');
        if (before === 'delivered') expect(['delivered', 'read']).toContain(after);
      }),
    );
  });
});
