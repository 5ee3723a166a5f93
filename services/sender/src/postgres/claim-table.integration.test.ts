import { CLAIM_MOVES } from '../gate/claim-moves';
import type { AttemptResult, DueItem, EvidenceItem, Verdict } from './gate-port';
import { dueItem, evidence, GateUnderTest, OPTIONS, RESULTS, results, type TestSchedule } from './test-support/gate-under-test';
import { statement } from '#runtime/postgres/sql-file';

/** Every row of the table of claim moves, each from a claim that came there the way claims do. */
let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

const LONG = 3_600_000;
const shown = new Set<string>();

interface Begun {
  schedule: TestSchedule;
  item: DueItem;
}

type Start = 'none' | 'sending' | 'retry_wait' | 'uncertain' | 'unconfirmed';

const starts: Record<Start, (details?: Record<string, unknown>) => Promise<Begun>> = {
  none: async (details) => {
    const schedule = await world.openSchedule(details);
    return { schedule, item: dueItem(schedule) };
  },
  sending: async (details) => {
    const schedule = await world.openSchedule(details);
    return { schedule, item: await world.claimed(schedule) };
  },
  retry_wait: async (details) => after('sending', details, (item) => results(item).retry),
  uncertain: async (details) => after('sending', details, (item) => results(item).uncertain),
  unconfirmed: async (details) => {
    const begun = await starts.uncertain(details);
    await world.passTime(begun.item, LONG);
    await sweep();
    return begun;
  },
};

async function after(start: Start, details: Record<string, unknown> | undefined, result: (item: DueItem) => AttemptResult) {
  const begun = await starts[start](details);
  await world.record(result(begun.item));
  return begun;
}

const sweep = () => world.gate.sweepDeadlines({ ...RESULTS, graceMs: 5_000, limit: 500 });
const ask = ({ item }: Begun) => world.decideOne(item);
const record = (pick: (given: ReturnType<typeof results>) => AttemptResult) => (begun: Begun) =>
  world.record(pick(results(begun.item)));
const tell = (kind: EvidenceItem['kind']) => (begun: Begun) => world.gate.recordEvidence([evidence(begun.item, kind)]);
const pass = (begun: Begun, ms: number) => world.passTime(begun.item, ms);
const cancelByName = ({ schedule, item }: Begun) =>
  world.api.rows(statement('by-name', 'SELECT * FROM sender.cancel_occurrences($1, $2, $3, $4, now(), 1)'), [
    schedule.scheduleId,
    schedule.runId,
    [item.occurrenceId],
    [item.position],
  ]);
const giveUp = (status: string) => (begun: Begun) =>
  world.scheduler.rows(statement(`give-up`, 'SELECT sender.refuse_unanswered($1, $2, $3, now(), $4, $5)'), [
    begun.schedule.scheduleId,
    [begun.item.occurrenceId],
    [0],
    status,
    status === 'refused' ? 'internal' : status,
  ]);
const suppress = (begun: Begun) =>
  world.gate.addSuppressions([
    {
      tenantId: begun.schedule.tenantId,
      channel: 'whatsapp',
      category: 'marketing',
      recipientHash: Buffer.from('them'),
      reason: 'asked',
    },
  ]);
const askSuppressed = async (begun: Begun) => {
  await suppress(begun);
  return world.decideOne({ ...begun.item, recipientHash: Buffer.from('them') });
};
const cancelSchedule = (begun: Begun) => world.changeGate(begun.schedule, 'cancel');
const askCancelled = async (begun: Begun) => {
  await cancelSchedule(begun);
  return ask(begun);
};

interface Row {
  from: Start;
  to: string;
  by: string;
  how?: string;
  details?: Record<string, unknown>;
  move: (begun: Begun) => Promise<unknown>;
  /** Names of the events that the move publishes. */
  told: string[];
  then?: (begun: Begun, answer: unknown) => Promise<void> | void;
}

const held = { holdGiveUpMs: 60_000 };
const resend = { onUncertain: 'resend' };
const validFor = async (begun: Begun, ms: number) => {
  begun.item = { ...begun.item, validUntil: Date.now() + ms };
  await world.admin.rows(statement('validity', 'UPDATE sender.claim SET valid_until = $2 WHERE occurrence_id = $1'), [
    begun.item.occurrenceId,
    new Date(begun.item.validUntil!),
  ]);
};

const TABLE: Row[] = [
  { from: 'none', to: 'sending', by: 'gate', move: ask, told: [], then: (_, answer) => expectKind(answer, 'claimed') },
  { from: 'none', to: 'refused', by: 'gate', how: 'suppressed', move: askSuppressed, told: ['MessageRefused'] },
  { from: 'none', to: 'refused', by: 'given_up', move: giveUp('refused'), told: ['MessageRefused'] },
  { from: 'none', to: 'cancelled', by: 'gate', move: askCancelled, told: ['MessageRefused'] },
  { from: 'none', to: 'cancelled', by: 'cancel', how: 'by name', move: cancelByName, told: ['MessageRefused'] },
  { from: 'none', to: 'cancelled', by: 'given_up', move: giveUp('cancelled'), told: ['MessageRefused'] },
  {
    from: 'none',
    to: 'expired',
    by: 'gate',
    move: ({ item }) => world.decideOne({ ...item, validUntil: Date.now() - 1 }),
    told: ['MessageRefused'],
  },
  { from: 'none', to: 'expired', by: 'given_up', move: giveUp('expired'), told: ['MessageRefused'] },
  {
    from: 'none',
    to: 'failed',
    by: 'gate',
    how: 'held for too long',
    details: held,
    move: async (begun) => {
      await world.changeGate(begun.schedule, 'pause');
      await ask(begun);
      await pass(begun, 61_000);
      return ask(begun);
    },
    told: ['MessageHeld', 'MessageFailed'],
    then: async ({ item }) => expect(await world.claim(item)).toMatchObject({ error_code: 'hold_expired', attempt: 0 }),
  },

  { from: 'sending', to: 'accepted', by: 'result', move: record((given) => given.accepted), told: ['MessageSubmitted'] },
  { from: 'sending', to: 'accepted', by: 'evidence', move: tell('sent'), told: ['MessageSubmitted'] },
  { from: 'sending', to: 'failed', by: 'result', move: record((given) => given.failed), told: ['MessageFailed'] },
  { from: 'sending', to: 'retry_wait', by: 'result', move: record((given) => given.retry), told: ['SendRetryPlanned'] },
  { from: 'sending', to: 'uncertain', by: 'result', move: record((given) => given.uncertain), told: ['OutcomeUncertain'] },
  {
    from: 'sending',
    to: 'uncertain',
    by: 'sweeper',
    move: async (begun) => {
      await pass(begun, OPTIONS.deadlineMs + 6_000);
      await sweep();
    },
    told: ['OutcomeUncertain'],
  },

  {
    from: 'retry_wait',
    to: 'sending',
    by: 'gate',
    move: async (begun) => {
      await pass(begun, 121_000);
      return ask(begun);
    },
    told: [],
    then: (_, answer) => expect(answer).toMatchObject({ kind: 'claimed', attempt: 2, step: 3, retriesUsed: 1 }),
  },
  { from: 'retry_wait', to: 'accepted', by: 'evidence', move: tell('delivered'), told: ['MessageSubmitted'] },
  { from: 'retry_wait', to: 'cancelled', by: 'gate', move: askCancelled, told: ['MessageRefused'] },
  { from: 'retry_wait', to: 'cancelled', by: 'cancel', how: 'by name', move: cancelByName, told: ['MessageRefused'] },
  {
    from: 'retry_wait',
    to: 'cancelled',
    by: 'cancel',
    how: 'with its schedule',
    move: async (begun) => {
      await cancelSchedule(begun);
      const rows = await world.api.rows(statement('settle', 'SELECT * FROM sender.settle_cancel($1, $2)'), [
        begun.schedule.scheduleId,
        begun.schedule.runId,
      ]);
      expect(rows[0]).toMatchObject({ retry_wait: '1', sending: '0', cancelled: '0' });
    },
    told: ['MessageRefused'],
  },
  { from: 'retry_wait', to: 'refused', by: 'gate', how: 'suppressed', move: askSuppressed, told: ['MessageRefused'] },
  {
    from: 'retry_wait',
    to: 'expired',
    by: 'gate',
    move: async (begun) => {
      await validFor(begun, 60_000);
      await pass(begun, 121_000);
      return ask(begun);
    },
    told: ['MessageRefused'],
  },
  {
    from: 'retry_wait',
    to: 'failed',
    by: 'gate',
    how: 'held for too long',
    details: held,
    move: async (begun) => {
      await world.changeGate(begun.schedule, 'pause');
      await ask(begun);
      await pass(begun, 61_000);
      return ask(begun);
    },
    told: ['MessageHeld', 'MessageFailed'],
  },

  {
    from: 'uncertain',
    to: 'accepted',
    by: 'result',
    how: 'late',
    move: record((given) => given.accepted),
    told: ['MessageSubmitted'],
  },
  { from: 'uncertain', to: 'accepted', by: 'evidence', move: tell('read'), told: ['MessageSubmitted'] },
  { from: 'uncertain', to: 'failed', by: 'result', how: 'late', move: record((given) => given.failed), told: ['MessageFailed'] },
  { from: 'uncertain', to: 'failed', by: 'evidence', move: tell('failed'), told: ['MessageFailed'] },
  {
    from: 'uncertain',
    to: 'retry_wait',
    by: 'result',
    how: 'late',
    move: record((given) => given.notSent),
    told: ['SendRetryPlanned'],
  },
  {
    from: 'uncertain',
    to: 'sending',
    by: 'gate',
    how: 'when the schedule says resend, 60 s after the deadline',
    details: resend,
    move: async (begun) => {
      await pass(begun, OPTIONS.deadlineMs + 59_000);
      expect(await ask(begun)).toMatchObject({ kind: 'held', reason: 'retry' });
      await pass(begun, 2_000);
      return ask(begun);
    },
    told: [],
    then: (_, answer) => expect(answer).toMatchObject({ kind: 'claimed', attempt: 2 }),
  },
  {
    from: 'uncertain',
    to: 'unconfirmed',
    by: 'sweeper',
    move: async (begun) => {
      await pass(begun, 901_000);
      await sweep();
    },
    told: ['OutcomeUnconfirmed'],
  },
  { from: 'unconfirmed', to: 'accepted', by: 'evidence', move: tell('sent'), told: ['MessageSubmitted'] },
  { from: 'unconfirmed', to: 'failed', by: 'evidence', move: tell('failed'), told: ['MessageFailed'] },
];

function expectKind(answer: unknown, kind: Verdict['kind']): void {
  expect((answer as Verdict).kind).toBe(kind);
}

describe.each(TABLE.map((row) => ({ ...row, name: [row.from, '->', row.to, 'by', row.by, row.how].join(' ').trim() })))(
  '$name',
  ({ from, to, by, details, move, told, then }) => {
    test('moves, one step further, and tells it', async () => {
      const begun = await starts[from](details);
      const before = await world.claim(begun.item);
      let answer: unknown;
      const events = await world.eventsOf(async () => {
        answer = await move(begun);
      });
      const claim = (await world.claim(begun.item))!;
      expect(claim.state).toBe(to);
      expect(claim.step).toBe((before?.step ?? 0) + 1);
      const own = events.filter(({ event }) => 'occurrenceId' in event && event.occurrenceId.equals(begun.item.occurrenceId));
      expect(own.map(({ name }) => name)).toEqual(told);
      const last = own.at(-1);
      if (last) expect(last.event).toMatchObject({ step: claim.step, revision: 1 });
      expect((await world.waiting(begun.item)) !== undefined).toBe(to === 'retry_wait');
      await then?.(begun, answer);
      shown.add(`${from} -> ${to} by ${by}`);
    });

    test('a revision in between: a claimed message goes on under its own', async () => {
      const begun = await starts[from](details);
      await world.revise(begun.schedule, 2, details);
      if (from === 'none') {
        // Without a claim it belongs to the new revision: what was released before is left to what is released again.
        if (by === 'gate') expect(await ask(begun)).toEqual({ kind: 'silent', why: 'superseded' });
        return;
      }
      await move(begun);
      expect(await world.claim(begun.item)).toMatchObject({ state: to, revision: 1 });
    });
  },
);

test('an unclaimed message of an older revision is superseded, and has no claim', async () => {
  const begun = await starts.none();
  await world.revise(begun.schedule, 2);
  const events = await world.eventsOf(async () => {
    expect(await ask(begun)).toEqual({ kind: 'silent', why: 'superseded' });
  });
  expect(events).toEqual([]);
  expect(await world.claim(begun.item)).toBeUndefined();
  expect(await world.decideOne({ ...begun.item, revision: 2 })).toMatchObject({ kind: 'claimed', revision: 2 });
});

test('every move of the table is shown above', () => {
  const all = Object.entries(CLAIM_MOVES).flatMap(([from, tos]) =>
    Object.entries(tos).flatMap(([to, causes]: [string, readonly string[]]) => causes.map((by) => `${from} -> ${to} by ${by}`)),
  );
  expect([...shown].sort()).toEqual(all.sort());
});

/** What a claim in a final state, or one that is being sent, answers to everything that could still come. */
describe.each(['accepted', 'failed', 'refused', 'cancelled', 'expired'] as const)('%s is final', (state) => {
  test('for every question, result, receipt and sweep', async () => {
    const begun = await starts.none();
    switch (state) {
      case 'accepted':
      case 'failed':
        await ask(begun);
        await world.record(results(begun.item)[state]);
        break;
      case 'refused':
        await askSuppressed(begun);
        break;
      case 'cancelled':
        await cancelByName(begun);
        break;
      case 'expired':
        await world.decideOne({ ...begun.item, validUntil: Date.now() - 1 });
    }
    const before = await world.claim(begun.item);
    const events = await world.eventsOf(async () => {
      expect(await ask(begun)).toEqual({ kind: 'silent', why: 'duplicate' });
      for (const result of Object.values(results(begun.item)) as AttemptResult[])
        expect((await world.record(result)).applied).toBe(false);
      for (const kind of ['sent', 'delivered', 'read', 'failed'] as const) await tell(kind)(begun);
      await pass(begun, LONG);
      await sweep();
      await cancelSchedule(begun);
      await ask(begun);
    });
    expect(events.filter(({ event }) => 'occurrenceId' in event && event.occurrenceId.equals(begun.item.occurrenceId))).toEqual(
      [],
    );
    expect(await world.claim(begun.item)).toMatchObject({ state, step: before!.step });
  });
});
