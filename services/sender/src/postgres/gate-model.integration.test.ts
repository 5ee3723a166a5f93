import fc from 'fast-check';
import { statement } from '#runtime/postgres/sql-file';
import { mayMove, type MoveCause } from '../gate/claim-moves';
import {
  ask,
  NOTHING_KNOWN,
  recordEvidence,
  recordResult,
  settleCancel,
  sweep,
  type GateFacts,
  type Message,
  type Question,
  type ResultFacts,
} from '../gate/gate-rules';
import type { AttemptResult, DueItem } from './gate-port';
import { dueItem, evidence, GateUnderTest, results, type TestSchedule } from './test-support/gate-under-test';

// Time passes in tens of seconds; no end of anything falls on a multiple of ten, whatever is added up.
const WINDOWS = { graceMs: 3_000, evidenceWindowMs: 96_000, resendAfterMs: 60_000 };
const DEADLINE_MS = 14_000;
const RETRY_MS = 23_000;
const GIVE_UP_MS = 303_000;

type Step =
  | { do: 'ask'; olderRevision: boolean }
  | { do: 'result'; outcome: ResultFacts['outcome']; earlierAttempt: boolean }
  | { do: 'evidence'; kind: 'sent' | 'delivered' | 'failed' | 'held'; attempt: 'latest' | 'earlier' | 'unnamed' }
  | { do: 'sweep' }
  | { do: 'pass'; tens: number }
  | { do: 'change'; action: 'pause' | 'resume' | 'revise' | 'cancel' }
  | { do: 'hold_number'; endsInMs: number | null }
  | { do: 'end_number_hold' }
  | { do: 'hold_run' }
  | { do: 'suppress' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('ask' as const), olderRevision: fc.boolean().map((b) => b && false) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'ask' as const, olderRevision: true }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('result' as const),
      outcome: fc.constantFrom('accepted', 'failed', 'retry', 'retry', 'not_sent', 'uncertain', 'uncertain'),
      earlierAttempt: fc.integer({ min: 0, max: 2 }).map((n) => n === 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('evidence' as const),
      kind: fc.constantFrom('sent', 'delivered', 'failed', 'failed', 'held'),
      attempt: fc.constantFrom('latest', 'earlier', 'unnamed'),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ do: 'sweep' as const }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('pass' as const), tens: fc.constantFrom(1, 3, 8, 11, 32) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      action: fc.constantFrom('pause', 'resume', 'resume', 'revise', 'cancel'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hold_number' as const), endsInMs: fc.constantFrom(null, 27_000) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'end_number_hold' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'hold_run' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'suppress' as const }) },
);

const asked: Step = { do: 'ask', olderRevision: false };
const result = (outcome: ResultFacts['outcome']): Step => ({ do: 'result', outcome, earlierAttempt: false });
const passed = (tens: number): Step => ({ do: 'pass', tens });

/** Pieces that lead somewhere: chance alone seldom reaches a second attempt. */
const STRETCHES: Step[][] = [
  [asked, result('retry'), passed(3), asked],
  [asked, result('uncertain'), passed(8), asked],
  [asked, passed(3), { do: 'sweep' }],
  [{ do: 'change', action: 'pause' }, asked, passed(32), asked],
  [asked, result('retry'), { do: 'change', action: 'revise' }, passed(3), { do: 'ask', olderRevision: true }],
];
const stretch = fc.oneof(
  { weight: 1, arbitrary: step.map((one) => [one]) },
  { weight: 1, arbitrary: fc.constantFrom(...STRETCHES) },
);

let world: GateUnderTest;
beforeEach(async () => {
  world = await GateUnderTest.open();
});
afterEach(() => world.close());

const followsTheRules = fc.asyncProperty(
  fc.record({
    onUncertain: fc.constantFrom('leave', 'resend'),
    dueInMs: fc.constantFrom(-1_000, -1_000, 15_000),
    validForMs: fc.constantFrom(null, null, 45_000, 145_000),
  }),
  fc.array(stretch, { minLength: 3, maxLength: 10 }),
  async (setting, stretches) => {
    const story = await Story.begin(setting);
    for (const each of stretches.flat()) await story.play(each);
  },
);

test('whatever happens in whatever order, the database does what the rules say', async () => {
  await fc.assert(followsTheRules, {
    numRuns: Number(process.env.GATE_MODEL_RUNS ?? 120),
    interruptAfterTimeLimit: 50_000,
  });
});

test.each([
  [
    'results of an earlier attempt move the claim',
    'record_results',
    'WHEN c.attempt <> r.attempt THEN NULL',
    'WHEN false THEN NULL',
  ],
  ['a hold never ends', 'decide_one', 'WHEN w.gives_up_at <= p_now', 'WHEN false'],
  [
    'a failed receipt of an earlier attempt counts',
    'settle_by_evidence',
    "AND e.kind = 'failed' AND e.attempt = c.attempt",
    "AND e.kind = 'failed'",
  ],
  [
    'a claimed message is superseded by a revision',
    'decide_one',
    'IF v_has_claim THEN\n    IF NOT',
    'IF v_has_claim AND p_revision = g.revision THEN\n    IF NOT',
  ],
  [
    'an uncertain outcome is repeated though nobody asked for it',
    'sweep_deadlines',
    "CASE WHEN g.on_uncertain = 'resend' THEN c.deadline",
    'CASE WHEN true THEN c.deadline',
  ],
])('and the comparison notices when %s', async (_, name, from, to) => {
  await world.changeFunction(name, from, to);
  const outcome = await fc.check(followsTheRules, {
    numRuns: 2_000,
    interruptAfterTimeLimit: 50_000,
    endOnFailure: true,
    seed: 7,
  });
  expect(outcome.failed).toBe(true);
  expect(outcome.counterexample).not.toBeNull();
});

const HOLD_RUN = statement(
  'hold-run',
  `UPDATE sender.gate SET run_hold_reason = 'template', run_hold_since = now() WHERE schedule_id = $1 AND status <> 'cancelled'`,
);
const SETTLE = statement('settle', 'SELECT * FROM sender.settle_cancel($1, $2)');

/** One message, told to the rules and to the database alike. */
class Story {
  private message: Message = NOTHING_KNOWN;
  private steps = new Set<number>();

  private constructor(
    private readonly schedule: TestSchedule,
    private item: DueItem,
    private gate: GateFacts,
  ) {}

  private numberHold: { reason: 'account'; until: number | null } | null = null;
  private suppressed = false;

  static async begin(setting: { onUncertain: 'leave' | 'resend'; dueInMs: number; validForMs: number | null }): Promise<Story> {
    const { onUncertain, dueInMs, validForMs } = setting;
    const schedule = await world.openSchedule({ onUncertain, holdGiveUpMs: GIVE_UP_MS });
    const now = Date.now();
    const item = dueItem(schedule, { dueAt: now + dueInMs, validUntil: validForMs === null ? null : now + validForMs });
    return new Story(schedule, item, { status: 'active', revision: 1, runHeld: false, onUncertain, holdGiveUpMs: GIVE_UP_MS });
  }

  async play(step: Step): Promise<void> {
    const before = this.message;
    let cause: MoveCause = 'gate';
    const events = await world.eventsOf(async () => {
      cause = await this.doBoth(step);
    });

    const claim = await world.claim(this.item);
    const waiting = await world.waiting(this.item);
    const expected = this.message;
    expect({
      after: step.do,
      claim: claim && {
        state: claim.state,
        attempt: claim.attempt,
        step: claim.step,
        revision: claim.revision,
        retriesUsed: claim.retries_used,
        goesOn: claim.next_attempt_at !== null,
      },
      waiting: waiting && { reason: waiting.reason, attempt: waiting.attempt },
    }).toEqual({
      after: step.do,
      claim: expected.claim
        ? {
            state: expected.claim.state,
            attempt: expected.claim.attempt,
            step: expected.claim.step,
            revision: expected.claim.revision,
            retriesUsed: expected.claim.retriesUsed,
            goesOn: expected.claim.nextAttemptAt !== null,
          }
        : undefined,
      waiting: expected.waiting ? { reason: expected.waiting.reason, attempt: expected.waiting.attempt } : undefined,
    });

    this.checkMove(before, cause);
    for (const { name, event } of events) {
      if (name === 'MessageHeld' || !('step' in event) || !event.occurrenceId.equals(this.item.occurrenceId)) continue;
      expect(this.steps).not.toContain(event.step);
      expect(event.step).toBeLessThanOrEqual(claim!.step);
      this.steps.add(event.step);
    }
  }

  /** Only moves of the table; an open outcome may be settled at once by evidence that was there before. */
  private checkMove(before: Message, cause: MoveCause): void {
    const from = before.claim?.state ?? 'none';
    const to = this.message.claim?.state;
    if (!to || (from === to && from !== 'sending') || before.claim?.step === this.message.claim?.step) return;
    const direct = mayMove(from, to, cause) || mayMove(from, to, 'evidence');
    const throughUncertain = mayMove(from, 'uncertain', cause) && mayMove('uncertain', to, 'evidence');
    expect({ from, to, cause, allowed: direct || throughUncertain }).toEqual({ from, to, cause, allowed: true });
  }

  private async doBoth(step: Step): Promise<MoveCause> {
    const now = Date.now();
    switch (step.do) {
      case 'ask':
        await this.ask(step.olderRevision, now);
        return 'gate';
      case 'result':
        await this.result(step, now);
        return 'result';
      case 'evidence': {
        const latest = this.message.claim?.attempt ?? 0;
        const attempt =
          step.attempt === 'unnamed' ? 0 : Math.max(latest > 0 ? 1 : 0, step.attempt === 'earlier' ? latest - 1 : latest);
        await world.gate.recordEvidence([evidence(this.item, step.kind, attempt)]);
        this.message = recordEvidence(this.message, { attempt, kind: step.kind });
        return 'evidence';
      }
      case 'sweep':
        await world.gate.sweepDeadlines({ ...WINDOWS, limit: 100 });
        this.message = sweep(this.message, this.gate, WINDOWS, now);
        return 'sweeper';
      case 'pass':
        await this.pass(step.tens * 10_000);
        return 'gate';
      case 'change':
        await this.change(step.action);
        return 'cancel';
      case 'hold_number': {
        const until = step.endsInMs === null ? null : now + step.endsInMs;
        await world.gate.holdNumber({ numberId: this.schedule.numberId, reason: 'account', until, detail: null });
        this.numberHold = { reason: 'account', until };
        return 'gate';
      }
      case 'end_number_hold':
        await world.gate.endNumberHold(this.schedule.numberId);
        this.numberHold = null;
        return 'gate';
      case 'hold_run':
        await world.admin.rows(HOLD_RUN, [this.schedule.scheduleId]);
        if (this.gate.status !== 'cancelled') this.gate = { ...this.gate, runHeld: true };
        return 'gate';
      case 'suppress':
        this.suppressed = true;
        await world.gate.addSuppressions([
          {
            tenantId: this.schedule.tenantId,
            channel: 'whatsapp',
            category: '*',
            recipientHash: Buffer.from('r'),
            reason: 'opted_out',
          },
        ]);
        return 'gate';
      default:
        return step satisfies never;
    }
  }

  private async ask(olderRevision: boolean, now: number): Promise<void> {
    const revision = olderRevision ? Math.max(1, this.gate.revision - 1) : this.gate.revision;
    const hold = this.numberHold && (this.numberHold.until === null || this.numberHold.until > now) ? this.numberHold : null;
    const question: Question = {
      revision,
      dueAt: this.item.dueAt,
      validUntil: this.item.validUntil,
      suppressed: this.suppressed,
      numberHold: hold,
      deadlineMs: DEADLINE_MS,
      now,
    };
    const { answer, message } = ask(this.message, this.gate, question);
    this.message = message;
    const verdict = await world.decideOne(
      { ...this.item, revision, recipientHash: Buffer.from('r') },
      { instance: 'model', deadlineMs: DEADLINE_MS },
    );
    expect(verdict).toMatchObject(answer);
  }

  private async result(step: Step & { do: 'result' }, now: number): Promise<void> {
    const latest = this.message.claim?.attempt ?? 0;
    const attempt = Math.max(1, step.earlierAttempt ? latest - 1 : latest);
    const given = results(this.item, attempt);
    const result: AttemptResult =
      step.outcome === 'not_sent'
        ? given.notSent
        : step.outcome === 'retry'
          ? { ...given.retry, nextAttemptAt: now + RETRY_MS }
          : given[step.outcome];
    const facts: ResultFacts =
      step.outcome === 'retry'
        ? { attempt, outcome: 'retry', nextAttemptAt: now + RETRY_MS, usesRetry: true, reason: 'retry' }
        : { attempt, outcome: step.outcome };
    const expected = recordResult(this.message, this.gate, facts, WINDOWS, now);
    this.message = expected.message;
    expect((await world.record(result, WINDOWS)).applied).toBe(expected.applied);
  }

  private async change(action: 'pause' | 'resume' | 'revise' | 'cancel'): Promise<void> {
    if (this.gate.status === 'cancelled') return;
    switch (action) {
      case 'pause':
        await world.changeGate(this.schedule, 'pause');
        this.gate = { ...this.gate, status: 'paused' };
        return;
      case 'resume':
        await world.changeGate(this.schedule, 'resume');
        this.gate = { ...this.gate, status: 'active', runHeld: false };
        return;
      case 'revise':
        this.gate = { ...this.gate, revision: this.gate.revision + 1 };
        await world.revise(this.schedule, this.gate.revision, { onUncertain: this.gate.onUncertain, holdGiveUpMs: GIVE_UP_MS });
        if (this.message.waiting?.attempt === 0) this.message = { ...this.message, waiting: null };
        return;
      case 'cancel':
        await world.changeGate(this.schedule, 'cancel');
        await world.api.rows(SETTLE, [this.schedule.scheduleId, this.schedule.runId]);
        this.gate = { ...this.gate, status: 'cancelled', runHeld: false };
        this.message = settleCancel(this.message, { ...this.item, revision: this.gate.revision });
        return;
      default:
        return action satisfies never;
    }
  }

  /** Instead of waiting, everything that is stored about the message's time comes nearer. */
  private async pass(ms: number): Promise<void> {
    await world.passTime(this.item, ms);
    const { claim, waiting } = this.message;
    const earlier = <T extends number | null>(at: T): T => (at === null ? at : at - ms) as T;
    this.item = { ...this.item, dueAt: earlier(this.item.dueAt), validUntil: earlier(this.item.validUntil) };
    this.message = {
      ...this.message,
      claim: claim && {
        ...claim,
        dueAt: earlier(claim.dueAt),
        validUntil: earlier(claim.validUntil),
        deadline: earlier(claim.deadline),
        sweepAt: earlier(claim.sweepAt),
        nextAttemptAt: earlier(claim.nextAttemptAt),
        heldSince: earlier(claim.heldSince),
      },
      waiting: waiting && { ...waiting, wakeAt: earlier(waiting.wakeAt), givesUpAt: earlier(waiting.givesUpAt) },
    };
    if (this.numberHold?.until != null) {
      this.numberHold = { ...this.numberHold, until: this.numberHold.until - ms };
      await world.gate.holdNumber({ numberId: this.schedule.numberId, ...this.numberHold, detail: null });
    }
  }
}
