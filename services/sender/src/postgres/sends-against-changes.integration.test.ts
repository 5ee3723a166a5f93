import { Client } from 'pg';
import { statement } from '#runtime/postgres/sql-file';
import { waitUntil } from '#runtime/wait-until';
import type { DueItem, Verdict } from './gate-port';
import { dueItem, GateUnderTest, OPTIONS, results, type TestSchedule } from './test-support/gate-under-test';

/** PostgreSQL orders every send against every change of its schedule. */
let world: GateUnderTest;
beforeEach(async () => {
  world = await GateUnderTest.open();
});
afterEach(() => world.close());

const SETTLE = statement('settle', 'SELECT * FROM sender.settle_cancel($1, $2)');
const COUNT = statement('count', 'SELECT * FROM sender.count_claims($1)');
const CLAIMED = statement('claimed-in-run', 'SELECT * FROM sender.claimed_in_run($1) AS id');
const BY_NAME = statement('by-name', 'SELECT * FROM sender.cancel_occurrences($1, $2, $3, $4, now(), 1)');
const SLEEP = statement('sleep', 'SELECT pg_sleep($1)');
const WAITERS = statement(
  'waiters',
  `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
);

async function onConnection<T>(role: 'punctual_api' | 'punctual_sender', work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: world.urlFor(role) });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const change = (client: Client, { scheduleId }: TestSchedule, action: string) =>
  client.query('SELECT sender.change_gate($1, $2, 1, $3)', [scheduleId, action, '{}']);

/** Until `call` either has its answer or stands in a queue for a lock. */
async function answeredOrWaiting(call: Promise<unknown>, query: string): Promise<'answered' | 'waiting'> {
  let answered = false;
  call.then(
    () => (answered = true),
    () => (answered = true),
  );
  return waitUntil('an answer or a lock that is waited for', async () => {
    if (answered) return 'answered';
    return (await world.admin.rows(WAITERS, [query])).length > 0 ? 'waiting' : null;
  });
}

/** A cancel is under way when the gate is asked, and commits while the gate waits: the gate must see it. */
async function cancelCommitsWhileTheGateWaits(): Promise<{ claimedAfterTheCommit: boolean }> {
  const schedule = await world.openSchedule();
  return onConnection('punctual_api', async (api) => {
    await api.query('BEGIN');
    await change(api, schedule, 'cancel');
    const verdict = world.decideOne(dueItem(schedule));
    const atCommit = await answeredOrWaiting(verdict, '%sender.decide(%');
    await api.query('COMMIT');
    return { claimedAfterTheCommit: atCommit === 'waiting' && (await verdict).kind === 'claimed' };
  });
}

/** The gate has read the schedule and is held up before its claim is there; a cancel comes, commits if it can, and is counted. */
async function cancelWhileTheGateIsHeldUp(): Promise<{ claimed: boolean; countedAsPrevented: boolean }> {
  const schedule = await world.openSchedule();
  const item = dueItem(schedule);
  return onConnection('punctual_sender', async (blocker) => {
    // Another transaction has the same claim in hand, so the gate's insert waits for its end.
    await blocker.query('BEGIN');
    await blocker.query(
      `INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, state, reason)
       VALUES ($1, $2, $3, 1, 0, 5, 0, now(), 'cancelled', 'cancelled')`,
      [item.occurrenceId, schedule.scheduleId, schedule.numberId],
    );
    const verdict = world.decideOne(item);
    await waitUntil(
      'the gate waits for the claim',
      async () => (await world.admin.rows(WAITERS, ['%sender.decide(%'])).length > 0,
    );

    const cancelled = world.changeGate(schedule, 'cancel');
    const counted = cancelled.then(async () => {
      const [row] = await world.api.rows<{ sending: string }>(SETTLE, [schedule.scheduleId, schedule.runId]);
      return Number(row!.sending) === 0;
    });
    await answeredOrWaiting(counted, '%sender.change_gate(%');
    await blocker.query('ROLLBACK');
    return { claimed: (await verdict).kind === 'claimed', countedAsPrevented: await counted };
  });
}

async function brokenPromises(): Promise<string[]> {
  const broken: string[] = [];
  if ((await cancelCommitsWhileTheGateWaits()).claimedAfterTheCommit)
    broken.push('a message was claimed after the cancel had committed');
  const { claimed, countedAsPrevented } = await cancelWhileTheGateIsHeldUp();
  if (claimed && countedAsPrevented) broken.push('a message that was counted as prevented was claimed');
  return broken;
}

const LOCK = `PERFORM pg_advisory_xact_lock_shared(7001, s.stripe)
  FROM (SELECT DISTINCT sender.stripe(u.id) AS stripe FROM unnest(p_schedule_ids) AS u (id) ORDER BY 1) AS s;`;

describe('a cancel around the claim', () => {
  test('is seen by the gate, or counts the claim', async () => {
    expect(await brokenPromises()).toEqual([]);
  });

  test('and the test notices a gate that takes no lock', async () => {
    await world.changeFunction('decide', LOCK, '');
    expect(await brokenPromises()).toEqual(['a message that was counted as prevented was claimed']);
  });

  test('and a gate that reads in the statement that takes the lock', async () => {
    await world.changeFunction('decide', LOCK, '');
    await world.changeFunction(
      'decide',
      'WITH plain AS MATERIALIZED (',
      `WITH locked AS MATERIALIZED (
         SELECT count(l.got) AS n FROM (
           SELECT pg_advisory_xact_lock_shared(7001, s.stripe)::text AS got
           FROM (SELECT DISTINCT sender.stripe(u.id) AS stripe FROM unnest(p_schedule_ids) AS u (id) ORDER BY 1) AS s
         ) AS l
       ), plain AS MATERIALIZED (`,
    );
    await world.changeFunction('decide', "WHERE g.status = 'active'", "WHERE (SELECT n FROM locked) > 0 AND g.status = 'active'");
    expect(await brokenPromises()).toEqual(['a message was claimed after the cancel had committed']);
  });
});

const MESSAGES = 12;
const AROUND_SECONDS = 0.05;

/** The messages of a schedule, asked for in batches at random instants of the same 50 ms in which `change` is made. */
async function race<T>(schedule: TestSchedule, items: DueItem[], makeChange: () => Promise<T>) {
  const verdicts = new Map<DueItem, Verdict>();
  const asking = [0, 1, 2].map(async (part) => {
    const batch = items.filter((_, index) => index % 3 === part);
    await world.sender.rows(SLEEP, [Math.random() * AROUND_SECONDS]);
    const answers = await world.gate.decide(batch, OPTIONS);
    batch.forEach((item, index) => verdicts.set(item, answers[index]!));
    const done = batch.filter((_, index) => answers[index]!.kind === 'claimed' && Math.random() < 0.3);
    await world.gate.recordResults(
      done.map((item) => (Math.random() < 0.5 ? results(item).accepted : { ...results(item).retry, nextAttemptAt: 0 })),
      { evidenceWindowMs: 900_000, resendAfterMs: 60_000 },
    );
  });
  const changing = world.api.rows(SLEEP, [Math.random() * AROUND_SECONDS]).then(makeChange);
  const changed = await changing;
  await Promise.all(asking);
  return { changed, verdicts };
}

async function inParallel(times: number, work: () => Promise<void>): Promise<void> {
  let left = times;
  await Promise.all(
    [1, 2, 3, 4].map(async () => {
      while (left-- > 0) await work();
    }),
  );
}

const begin = async () => {
  const schedule = await world.openSchedule();
  return { schedule, items: Array.from({ length: MESSAGES }, (_, position) => dueItem(schedule, { position })) };
};
const isClaimed = (verdict: Verdict | undefined) => verdict?.kind === 'claimed';

describe('a thousand races within 50 ms around the claim', () => {
  test('500 cancels of whole schedules: the sum holds, and nothing that was prevented is ever claimed', async () => {
    const seen = { prevented: 0, claimed: 0 };
    await inParallel(500, async () => {
      const { schedule, items } = await begin();
      const { changed, verdicts } = await race(schedule, items, async () => {
        await world.changeGate(schedule, 'cancel');
        const [row] = await world.api.rows<Record<string, string>>(SETTLE, [schedule.scheduleId, schedule.runId]);
        return Object.fromEntries(Object.entries(row!).map(([state, count]) => [state, Number(count)])) as Record<string, number>;
      });
      // Every item again, and once more what had been left for a retry.
      for (const verdict of await world.gate.decide(items, OPTIONS)) expect(isClaimed(verdict)).toBe(false);

      const { sending, accepted, retry_wait, uncertain, unconfirmed, failed, refused, expired, cancelled } = changed;
      const submitted = accepted!;
      const ended = failed! + refused! + expired! + cancelled!;
      const prevented = MESSAGES - (sending! + submitted + uncertain! + unconfirmed! + ended);
      expect(prevented).toBeGreaterThanOrEqual(retry_wait!);
      expect(ended).toBe(0);
      // A claim that was waiting for its retry when the cancel came is prevented as well.
      const claimed = [...verdicts.values()].filter(isClaimed).length;
      expect(prevented - retry_wait!).toBe(MESSAGES - claimed);
      seen.prevented += prevented;
      seen.claimed += claimed;
    });
    // Both sides of the race were seen, or it was none.
    expect(seen.prevented).toBeGreaterThan(300);
    expect(seen.claimed).toBeGreaterThan(300);
  });

  test('200 cancels of single messages: each is prevented or claimed, never both', async () => {
    const seen = { prevented: 0, claimed: 0 };
    await inParallel(200, async () => {
      const { schedule, items } = await begin();
      const { changed, verdicts } = await race(schedule, items, () =>
        world.api.rows<{ occurrence_id: Buffer; prevented: boolean; state: string }>(BY_NAME, [
          schedule.scheduleId,
          schedule.runId,
          items.map((item) => item.occurrenceId),
          items.map((item) => item.position),
        ]),
      );
      expect(changed).toHaveLength(MESSAGES);
      for (const item of items) {
        const row = changed.find((each) => each.occurrence_id.equals(item.occurrenceId))!;
        const claimed = isClaimed(verdicts.get(item));
        if (row.prevented) expect(row.state).toBe('cancelled');
        // Prevented although claimed: its first attempt had failed and it waited for the next.
        if (row.prevented && claimed) expect((await world.claim(item))!.attempt).toBe(1);
        if (!row.prevented) expect(claimed).toBe(true);
        seen[claimed ? 'claimed' : 'prevented']++;
      }
      for (const verdict of await world.gate.decide(items, OPTIONS))
        expect(verdict.kind === 'claimed' && verdict.attempt === 1).toBe(false);
    });
    expect(seen.prevented).toBeGreaterThan(100);
    expect(seen.claimed).toBeGreaterThan(100);
  });

  test('150 pauses: what is not claimed at its commit is held until the resume, and then claimed once', async () => {
    const seen = { held: 0, claimed: 0 };
    await inParallel(150, async () => {
      const { schedule, items } = await begin();
      const { changed, verdicts } = await race(schedule, items, async () => {
        await world.changeGate(schedule, 'pause');
        const [row] = await world.api.rows<Record<string, string>>(COUNT, [schedule.runId]);
        return Object.values(row!).reduce((sum, count) => sum + Number(count), 0);
      });
      const claimed = items.filter((item) => isClaimed(verdicts.get(item)));
      expect(claimed).toHaveLength(changed);
      const rest = items.filter((item) => !claimed.includes(item));
      for (const verdict of await world.gate.decide(rest, OPTIONS))
        expect(verdict).toMatchObject({ kind: 'held', reason: 'paused' });
      await world.changeGate(schedule, 'resume');
      for (const verdict of await world.gate.decide(rest, OPTIONS))
        expect(verdict).toMatchObject({ kind: 'claimed', attempt: 1 });
      seen.held += rest.length;
      seen.claimed += claimed.length;
    });
    expect(seen.held).toBeGreaterThan(100);
    expect(seen.claimed).toBeGreaterThan(100);
  });

  test('150 revisions: after the commit nothing is claimed under the old one, and nothing is claimed under both', async () => {
    const seen = { superseded: 0, claimed: 0 };
    await inParallel(150, async () => {
      const { schedule, items } = await begin();
      const { changed, verdicts } = await race(schedule, items, async () => {
        await world.revise(schedule, 2);
        return (await world.scheduler.rows(CLAIMED, [schedule.runId])).length;
      });
      const claimed = items.filter((item) => isClaimed(verdicts.get(item)));
      expect(claimed).toHaveLength(changed);
      const again = await world.gate.decide(
        items.map((item) => ({ ...item, revision: 2 })),
        OPTIONS,
      );
      items.forEach((item, index) => {
        const first = isClaimed(verdicts.get(item));
        const second = again[index]!;
        if (!first) expect(second).toMatchObject({ kind: 'claimed', revision: 2, attempt: 1 });
        // A retry of what was claimed before finishes under the old revision.
        if (first && second.kind === 'claimed') expect(second).toMatchObject({ revision: 1, attempt: 2 });
        seen[first ? 'claimed' : 'superseded']++;
      });
    });
    expect(seen.superseded).toBeGreaterThan(100);
    expect(seen.claimed).toBeGreaterThan(100);
  });
});
