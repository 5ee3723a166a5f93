import fc from 'fast-check';
import { ANSWER_FACTS, type AnswerClass, type NotAccepted } from '../providers/answer';
import { decideOutcome, type OutcomeContext } from './decide-outcome';
import { HostCircuit } from './host-circuit';

const NOW = 1_795_000_000_000;
const CONTEXT: OutcomeContext = {
  attempt: 1,
  retriesUsed: 0,
  retryDelaysMs: [120_000, 240_000, 480_000],
  now: NOW,
  random: 0,
  repetition: 0,
};

function answer(of: Exclude<AnswerClass, 'accepted'>, facts: Partial<NotAccepted> = {}): NotAccepted {
  return {
    class: of,
    code: 'provider_unavailable',
    providerCode: '1',
    text: 'why',
    waitMs: 0,
    growing: null,
    retriesAtMost: null,
    alert: false,
    ...facts,
  };
}

const CLASSES = Object.keys(ANSWER_FACTS).filter((each) => each !== 'accepted') as Array<Exclude<AnswerClass, 'accepted'>>;

describe('what is recorded of an attempt', () => {
  it('is accepted, held or not', () => {
    const { outcome, effects } = decideOutcome(
      { class: 'accepted', providerMessageId: 'wamid.1', providerStatus: 'held' },
      CONTEXT,
    );
    expect(outcome).toEqual({ kind: 'accepted', providerMessageId: 'wamid.1', providerStatus: 'held' });
    expect(effects).toEqual([]);
  });

  it('waits by the delays of the schedule, one after the other, and fails when they are used up', () => {
    const next = (retriesUsed: number) =>
      decideOutcome(answer('retry_checked'), { ...CONTEXT, retriesUsed, attempt: retriesUsed + 1 }).outcome;
    expect(next(0)).toMatchObject({ kind: 'retry', nextAttemptAt: NOW + 120_000, usesRetry: true, waitReason: 'retry' });
    expect(next(1)).toMatchObject({ kind: 'retry', nextAttemptAt: NOW + 240_000 });
    expect(next(2)).toMatchObject({ kind: 'retry', nextAttemptAt: NOW + 480_000 });
    expect(next(3)).toMatchObject({ kind: 'failed', code: 'provider_unavailable', reachedProvider: true });
  });

  it('waits at least as long as the code asks for', () => {
    expect(decideOutcome(answer('retry_checked', { waitMs: 300_000 }), CONTEXT).outcome).toMatchObject({
      nextAttemptAt: NOW + 300_000,
    });
  });

  it('tries media once more only', () => {
    const media = answer('retry_checked', { retriesAtMost: 1 });
    expect(decideOutcome(media, CONTEXT).outcome.kind).toBe('retry');
    expect(decideOutcome(media, { ...CONTEXT, retriesUsed: 1 }).outcome.kind).toBe('failed');
  });

  it('waits 1, 4, 16 seconds for a pair, without using up retries', () => {
    const growing = [1_000, 4_000, 16_000];
    const next = (attempt: number) =>
      decideOutcome(answer('recipient_later', { growing }), { ...CONTEXT, attempt, retryDelaysMs: [] }).outcome;
    expect([1, 2, 3, 4].map((attempt) => (next(attempt) as { nextAttemptAt: number }).nextAttemptAt - NOW)).toEqual([
      1_000, 4_000, 16_000, 16_000,
    ]);
    expect(next(9)).toMatchObject({ kind: 'retry', usesRetry: false, waitReason: 'pair_limit' });
  });

  it('slows a number for one to two seconds', () => {
    const { outcome, effects } = decideOutcome(answer('slow_number', { waitMs: 1_000 }), { ...CONTEXT, random: 0.5 });
    expect(effects).toEqual([{ kind: 'slow_number', waitMs: 1_500 }]);
    expect(outcome).toMatchObject({ kind: 'retry', usesRetry: false, waitReason: 'pace', nextAttemptAt: NOW + 1_500 });
  });

  it.each([
    ['stop_number', 'number', 'account', null],
    ['stop_tenant', 'number', 'account', null],
    ['stop_waba', 'waba', 'account', null],
    ['slow_app', 'app', 'circuit', NOW + 1_020_000],
    ['slow_waba', 'waba', 'circuit', NOW + 1_020_000],
    ['pause_number', 'number', 'circuit', NOW + 1_020_000],
  ] as const)('%s holds the %s (%s)', (of, scope, reason, until) => {
    const { outcome, effects } = decideOutcome(answer(of, { waitMs: 1_020_000 }), CONTEXT);
    expect(effects).toEqual([{ kind: 'hold_number', scope, reason, until, detail: '1: why' }]);
    expect(outcome).toMatchObject({ kind: 'retry', usesRetry: false, waitReason: reason, nextAttemptAt: until ?? NOW });
  });

  it('pauses a number for longer each time it is restricted', () => {
    const spam = answer('pause_number', { growing: [3_600_000, 14_400_000, 86_400_000] });
    const until = (repetition: number) =>
      (decideOutcome(spam, { ...CONTEXT, repetition }).effects[0] as { until: number }).until - NOW;
    expect([0, 1, 2, 3].map(until)).toEqual([3_600_000, 14_400_000, 86_400_000, 86_400_000]);
  });

  it('holds a template and brings its message back when the hold ends', () => {
    const { outcome, effects } = decideOutcome(answer('pause_template'), CONTEXT);
    const { until } = effects[0] as { until: number };
    expect(effects[0]).toMatchObject({ kind: 'hold_template' });
    expect(outcome).toMatchObject({ kind: 'retry', usesRetry: false, waitReason: 'template', nextAttemptAt: until });
  });

  it('never plans another attempt for what may have been sent', () => {
    fc.assert(
      fc.property(fc.nat(10), fc.nat(3), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, retriesUsed, random) => {
        const { outcome } = decideOutcome(answer('unknown'), { ...CONTEXT, attempt, retriesUsed, random });
        expect(outcome.kind).toBe('uncertain');
      }),
    );
  });

  it('does what the class says, for every class: its fate, and whether a retry is used up', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CLASSES),
        fc.nat(2),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 0, max: 90_000_000 }),
        (of, retriesUsed, random, waitMs) => {
          const { outcome } = decideOutcome(answer(of, { waitMs }), { ...CONTEXT, retriesUsed, random });
          const { fate, usesRetry } = ANSWER_FACTS[of];
          switch (fate) {
            case 'failed':
              expect(outcome.kind).toBe('failed');
              break;
            case 'unknown':
              expect(outcome.kind).toBe('uncertain');
              break;
            default:
              expect(['retry', 'not_sent']).toContain(outcome.kind);
              expect((outcome as { nextAttemptAt: number }).nextAttemptAt).toBeGreaterThanOrEqual(NOW);
              if (outcome.kind === 'retry') expect(outcome.usesRetry).toBe(usesRetry);
          }
        },
      ),
    );
  });
});

describe('the circuit of a host', () => {
  it('opens after five failures in a row, for longer each time, and closes with the first success', () => {
    const circuit = new HostCircuit();
    expect([0, 1, 2, 3].map((now) => circuit.notReached(now))).toEqual([0, 0, 0, 0]);
    circuit.reached();
    expect([4, 5, 6, 7, 8].map((now) => circuit.notReached(now))).toEqual([0, 0, 0, 0, 1_000]);
    expect(circuit.isOpen(1_007)).toBe(true);
    expect(circuit.isOpen(1_008)).toBe(false);
    expect(circuit.notReached(1_010)).toBe(2_000);
    expect(circuit.notReached(1_020)).toBe(0);
    circuit.reached();
    expect(circuit.notReached(3_500)).toBe(0);
  });

  it('is never open for more than half a minute', () => {
    const circuit = new HostCircuit();
    let now = 0;
    for (let i = 0; i < 50; i++) {
      circuit.notReached(now);
      now = Math.max(now, circuit.openUntil) + 1;
    }
    expect(circuit.openUntil - now).toBeLessThanOrEqual(30_000);
  });
});
