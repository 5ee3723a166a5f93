import { statement } from '#runtime/postgres/sql-file';
import { dueItem, GateUnderTest, OPTIONS, RESULTS, results, type TestSchedule } from './test-support/gate-under-test';

let world: GateUnderTest;
beforeAll(async () => {
  world = await GateUnderTest.open();
});
afterAll(() => world.close());

const DAY = 86_400_000;

describe('holds', () => {
  test('a paused message waits seven days from the later of due and hold, told once, and goes on at the resume', async () => {
    const schedule = await world.openSchedule();
    await world.changeGate(schedule, 'pause');
    const item = dueItem(schedule, { position: 3 });
    const events = await world.eventsOf(async () => {
      const verdict = await world.decideOne(item);
      expect(verdict).toMatchObject({ kind: 'held', reason: 'paused' });
      if (verdict.kind !== 'held') return;
      expect(verdict.givesUpAt - verdict.since).toBe(7 * DAY);
      expect(verdict.wakeAt).toBe(verdict.givesUpAt);
      expect(await world.decideOne(item)).toEqual(verdict);
    });
    expect(events).toMatchObject([{ name: 'MessageHeld', event: { reason: 'paused', step: 0, position: 3, until: null } }]);

    expect(await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 5 }])).toEqual([]);
    await world.changeGate(schedule, 'resume');
    const [taken] = await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 5 }]);
    expect(taken).toMatchObject({
      occurrenceId: item.occurrenceId,
      attempt: 0,
      reason: 'paused',
      position: 3,
      dueAt: item.dueAt,
    });
    expect(await world.decideOne(taken!)).toMatchObject({ kind: 'claimed', attempt: 1 });
    expect(await world.waiting(item)).toBeUndefined();
  });

  test('another reason is told, its time counts on, and the end stays', async () => {
    const schedule = await world.openSchedule();
    const item = dueItem(schedule);
    await world.gate.holdNumber({ numberId: schedule.numberId, reason: 'account', until: null, detail: 'token expired' });
    const first = await world.decideOne(item);
    await world.passTime(item, DAY);
    await world.changeGate(schedule, 'pause');
    const events = await world.eventsOf(async () => {
      const second = await world.decideOne(item);
      expect(second).toMatchObject({ kind: 'held', reason: 'paused' });
      if (first.kind !== 'held' || second.kind !== 'held') throw new Error('not held');
      expect(second.givesUpAt).toBe(first.givesUpAt - DAY);
    });
    expect(events).toMatchObject([{ name: 'MessageHeld', event: { reason: 'paused' } }]);
  });

  test('early by PostgreSQL’s clock: not yet, woken at the due time, told to nobody', async () => {
    const schedule = await world.openSchedule();
    const dueAt = Date.now() + 60_000;
    const events = await world.eventsOf(async () => {
      expect(await world.decideOne(dueItem(schedule, { dueAt }))).toMatchObject({
        kind: 'held',
        reason: 'not_yet',
        wakeAt: dueAt,
      });
    });
    expect(events).toEqual([]);
  });

  test('a number’s hold ends by itself, by the sender, or by new credentials from the api', async () => {
    for (const ends of ['time', 'sender', 'api'] as const) {
      const schedule = await world.openSchedule();
      const item = dueItem(schedule);
      const until = ends === 'time' ? Date.now() + 60_000 : null;
      await world.gate.holdNumber({ numberId: schedule.numberId, reason: 'account', until, detail: 'no payment' });
      expect(await world.decideOne(item)).toMatchObject({ kind: 'held', reason: 'account' });
      expect(await world.gate.readNumbers([schedule.numberId])).toMatchObject([
        { holdReason: 'account', holdUntil: until, holdDetail: 'no payment', learnedRate: null },
      ]);
      const visible = await world.scheduler.rows(
        statement('number-holds', 'SELECT reason FROM sender.number_hold_public WHERE number_id = $1'),
        [schedule.numberId],
      );
      expect(visible).toEqual([{ reason: 'account' }]);
      if (ends === 'time') {
        await world.gate.holdNumber({ numberId: schedule.numberId, reason: 'account', until: Date.now() - 1, detail: null });
        await world.passTime(item, 60_000);
      }
      if (ends === 'sender') await world.gate.endNumberHold(schedule.numberId);
      if (ends === 'api') await world.api.rows(statement('clear', 'SELECT sender.clear_number_hold($1)'), [schedule.numberId]);
      const [taken] = await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 1 }]);
      expect(await world.decideOne(taken!)).toMatchObject({ kind: 'claimed' });
    }
  });

  test('what a timed hold sent back goes as soon as the hold is ended, and a retry not before its own time', async () => {
    const schedule = await world.openSchedule();
    const until = Date.now() + 3_600_000;
    const sentBack = async (waitReason: 'circuit' | 'account' | 'retry' | 'pair_limit') => {
      const item = await world.claimed(schedule);
      await world.record({ ...results(item).retry, waitReason, nextAttemptAt: until + 500 });
      return item;
    };
    const held = [await sentBack('circuit'), await sentBack('account')];
    const own = [await sentBack('retry'), await sentBack('pair_limit')];
    const pausedToo = await sentBack('circuit');
    await world.gate.holdNumber({ numberId: schedule.numberId, reason: 'circuit', until, detail: '131048' });
    await world.changeGate(schedule, 'pause');
    await world.decideOne(pausedToo);
    await world.changeGate(schedule, 'resume');
    for (const item of held)
      expect(await world.decideOne(item)).toMatchObject({ kind: 'held', reason: 'circuit', wakeAt: until });

    await world.gate.endNumberHold(schedule.numberId);
    const taken = await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 9 }]);
    expect(new Set(taken.map((item) => item.occurrenceId.toString('hex')))).toEqual(
      new Set([...held, pausedToo].map((item) => item.occurrenceId.toString('hex'))),
    );
    for (const item of taken) expect(await world.decideOne(item)).toMatchObject({ kind: 'claimed', attempt: 2 });
    expect((await world.claim(own[0]!))!.next_attempt_at!.getTime()).toBe(until + 500);
    expect(await world.decideOne(own[0]!)).toMatchObject({ kind: 'held', reason: 'retry' });
    expect(await world.decideOne(own[1]!)).toMatchObject({ kind: 'held', reason: 'pair_limit' });
  });

  test('a learned rate survives beside a hold', async () => {
    const { numberId } = await world.openSchedule();
    await world.gate.setLearnedRate(numberId, 40);
    await world.gate.holdNumber({ numberId, reason: 'circuit', until: null, detail: null });
    await world.gate.endNumberHold(numberId);
    expect(await world.gate.readNumbers([numberId])).toMatchObject([{ learnedRate: 40, holdReason: null }]);
  });

  test('a held template holds its messages only', async () => {
    const schedule = await world.openSchedule();
    await world.gate.holdTemplate({ templateKey: 'waba/summer/en', until: null, detail: 'paused by the provider' });
    const items = ['waba/summer/en', 'waba/summer/de', null].map((templateKey) => dueItem(schedule, { templateKey }));
    const verdicts = await world.gate.decide(items, OPTIONS);
    expect(verdicts.map(({ kind }) => kind)).toEqual(['held', 'claimed', 'claimed']);
    expect(verdicts[0]).toMatchObject({ reason: 'template' });
    await world.gate.endTemplateHold('waba/summer/en');
    const [taken] = await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 1 }]);
    expect(await world.decideOne({ ...taken!, templateKey: 'waba/summer/en' })).toMatchObject({ kind: 'claimed' });
  });

  test('suppressed for a category or for all of them', async () => {
    const schedule = await world.openSchedule({ category: 'utility' });
    const { tenantId } = schedule;
    const entry = { tenantId, channel: 'whatsapp' as const, reason: 'opted out' };
    await world.gate.addSuppressions([
      { ...entry, category: 'marketing', recipientHash: Buffer.from('a') },
      { ...entry, category: 'utility', recipientHash: Buffer.from('b') },
      { ...entry, category: '*', recipientHash: Buffer.from('c') },
      { ...entry, category: '*', recipientHash: Buffer.from('c') },
    ]);
    const items = ['a', 'b', 'c', 'd'].map((hash) => dueItem(schedule, { recipientHash: Buffer.from(hash) }));
    const verdicts = await world.gate.decide(items, OPTIONS);
    expect(verdicts.map(({ kind }) => kind)).toEqual(['claimed', 'final', 'final', 'claimed']);
    expect(verdicts[1]).toEqual({ kind: 'final', status: 'refused', reason: 'suppressed', afterUncertain: false });
  });
});

describe('waking', () => {
  const retrying = async (schedule: TestSchedule, priority: number, dueInMs = -1) => {
    const item = await world.claimed(schedule, { priority });
    await world.record({ ...results(item).retry, nextAttemptAt: Date.now() + dueInMs });
    return item;
  };

  test('most urgent first, no more than there is room for, and nobody gets the same row while it is leased', async () => {
    const schedule = await world.openSchedule();
    const other = await world.openSchedule();
    for (const priority of [5, 9, 1, 5]) await retrying(schedule, priority);
    await retrying(other, 5);
    await retrying(schedule, 1, 60_000);
    const numbers = [
      { numberId: schedule.numberId, free: 3 },
      { numberId: other.numberId, free: 0 },
    ];
    const first = await world.gate.takeWaiting(numbers);
    expect(first.map(({ priority }) => priority)).toEqual([1, 5, 5]);
    const second = await world.gate.takeWaiting(numbers);
    expect(second.map(({ priority }) => priority)).toEqual([9]);
    await world.gate.releaseWaiting(first.map(({ occurrenceId }) => occurrenceId));
    expect(await world.gate.takeWaiting(numbers)).toHaveLength(3);
  });

  test('a lease that has run out hands the row out again; until the gate has answered it stays', async () => {
    const schedule = await world.openSchedule();
    await retrying(schedule, 5);
    const numbers = [{ numberId: schedule.numberId, free: 1 }];
    expect(await world.gate.takeWaiting(numbers, { leaseMs: 0 })).toHaveLength(1);
    const [again] = await world.gate.takeWaiting(numbers);
    expect(await world.decideOne(again!)).toMatchObject({ kind: 'claimed', attempt: 2 });
    await world.passTime(again!, 60_000);
    expect(await world.gate.takeWaiting(numbers)).toEqual([]);
  });

  test('how long until there is something to take', async () => {
    const schedule = await world.openSchedule();
    expect(await world.gate.nextWakeInMs([schedule.numberId])).toBeNull();
    await retrying(schedule, 9, 30_000);
    const inMs = await world.gate.nextWakeInMs([schedule.numberId]);
    expect(inMs).toBeGreaterThan(20_000);
    expect(inMs).toBeLessThanOrEqual(30_000);
    await retrying(schedule, 5);
    expect(await world.gate.nextWakeInMs([schedule.numberId])).toBe(0);
  });

  test('a retry is not claimed before its time, and keeps its reason', async () => {
    const schedule = await world.openSchedule();
    const item = await world.claimed(schedule);
    await world.record({ ...results(item).retry, waitReason: 'pair_limit' });
    const events = await world.eventsOf(async () => {
      expect(await world.decideOne(item)).toMatchObject({ kind: 'held', reason: 'pair_limit' });
    });
    expect(events).toEqual([]);
  });

  test('not sent: at once again, without using a retry', async () => {
    const schedule = await world.openSchedule();
    const item = await world.claimed(schedule);
    await world.record(results(item).notSent);
    expect(await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 1 }])).toHaveLength(1);
    expect(await world.decideOne(item)).toMatchObject({ kind: 'claimed', attempt: 2, retriesUsed: 0 });
  });

  test('what nobody takes ends all the same, and what has not ended is left alone', async () => {
    const schedule = await world.openSchedule();
    await world.gate.holdNumber({ numberId: schedule.numberId, reason: 'account', until: null, detail: null });
    const forGood = dueItem(schedule);
    const valid = dueItem(schedule, { validUntil: Date.now() + 60_000 });
    const waits = dueItem(schedule);
    await world.gate.decide([forGood, valid, waits], OPTIONS);
    expect(await world.gate.sweepWaiting()).toBe(0);
    await world.passTime(forGood, 8 * DAY);
    await world.passTime(valid, 61_000);
    expect(await world.gate.sweepWaiting()).toBe(2);
    expect(await world.claim(forGood)).toMatchObject({ state: 'failed', error_code: 'hold_expired' });
    expect(await world.claim(valid)).toMatchObject({ state: 'expired' });
    expect(await world.claim(waits)).toBeUndefined();
    expect(await world.waiting(waits)).toMatchObject({ reason: 'account' });
  });

  test('a revision removes what has no claim, and leaves what has one', async () => {
    const schedule = await world.openSchedule();
    const claimed = await retrying(schedule, 5, 60_000);
    await world.changeGate(schedule, 'pause');
    const unclaimed = dueItem(schedule);
    await world.decideOne(unclaimed);
    await world.revise(schedule, 2);
    expect(await world.waiting(unclaimed)).toBeUndefined();
    expect(await world.waiting(claimed)).toBeDefined();
  });
});

describe('records without a place', () => {
  test('are parked while their schedule is unknown, and offered when it is known', async () => {
    const known = await world.openSchedule();
    const schedule = { ...known, scheduleId: '01890000-0000-7000-8000-0000000000aa', runId: Buffer.alloc(12, 7) };
    const item = dueItem(schedule, { record: { key: Buffer.alloc(20), value: Buffer.from('bytes') } });
    expect(await world.decideOne(item)).toEqual({ kind: 'parked' });
    expect(await world.decideOne(item)).toEqual({ kind: 'parked' });
    expect(await world.claim(item)).toBeUndefined();
    const answered = statement('answered', 'SELECT sender.count_answered($1)::int AS count');
    expect(await world.scheduler.rows(answered, [schedule.runId])).toEqual([{ count: 1 }]);

    await world.changeGate(schedule, 'open', 1, {
      tenantId: schedule.tenantId,
      numberId: schedule.numberId,
      mode: 'live',
      channel: 'whatsapp',
      onUncertain: 'leave',
      retryDelaysMs: [],
      runId: schedule.runId.toString('hex'),
      holdGiveUpMs: 60_000,
    });
    const [offered] = await world.gate.takeWaiting([{ numberId: schedule.numberId, free: 5 }]);
    expect(await world.decideOne(offered!)).toMatchObject({ kind: 'claimed', mode: 'live' });
    expect(await world.scheduler.rows(answered, [schedule.runId])).toEqual([{ count: 1 }]);
  });

  test('are kept with key, bytes and reason when they can not be read', async () => {
    const record = { key: null, value: Buffer.from('rubbish'), reason: 'not_single_object' };
    await world.gate.parkRecord(record);
    await world.gate.parkRecord(record);
    const rows = await world.admin.rows(statement('parked', 'SELECT key, value, reason FROM sender.parked WHERE value = $1'), [
      record.value,
    ]);
    expect(rows).toEqual([{ key: Buffer.alloc(0), value: record.value, reason: 'not_single_object' }]);
  });
});

describe('the deadline sweeper', () => {
  test('leaves what is inside deadline and grace, and several at once take each claim once', async () => {
    const schedule = await world.openSchedule();
    const items = Array.from({ length: 60 }, (_, position) => dueItem(schedule, { position }));
    await world.gate.decide(items, OPTIONS);
    await Promise.all(items.slice(0, 40).map((item) => world.passTime(item, OPTIONS.deadlineMs + 6_000)));
    await Promise.all(items.slice(40).map((item) => world.passTime(item, OPTIONS.deadlineMs + 1_000)));
    const options = { ...RESULTS, graceMs: 5_000, limit: 15 };
    const swept = await Promise.all(Array.from({ length: 8 }, () => world.gate.sweepDeadlines(options)));
    const rest = await world.gate.sweepDeadlines({ ...options, limit: 200 });
    expect(swept.reduce((sum, { overdue }) => sum + overdue, rest.overdue)).toBeGreaterThanOrEqual(40);
    const claims = await Promise.all(items.map((item) => world.claim(item)));
    expect(claims.map((claim) => claim!.state)).toEqual([
      ...Array<string>(40).fill('uncertain'),
      ...Array<string>(20).fill('sending'),
    ]);
    expect(claims.every((claim) => claim!.step === (claim!.state === 'uncertain' ? 2 : 1))).toBe(true);
  });
});
