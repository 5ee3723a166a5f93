import { openDatabase } from '#runtime/postgres/open-database';
import type { Database } from '#runtime/postgres/database';
import { statement } from '#runtime/postgres/sql-file';
import { PostgresGate } from './gate';
import type { AttemptResult } from './gate-port';
import { dueItem, evidence, GateUnderTest, OPTIONS, RESULTS, results } from './test-support/gate-under-test';

/** Redelivered batches, several senders for a moment: the same messages from many connections at once. */
let world: GateUnderTest;
let pools: Database[];
beforeEach(async () => {
  world = await GateUnderTest.open();
  pools = await Promise.all(
    // A gate with deadlocks is resolved one deadlock a second, so its callers wait for longer than any real one would.
    Array.from({ length: 8 }, () =>
      openDatabase({ url: world.urlFor('punctual_sender'), name: 'same-ids', max: 1, statementTimeoutMs: 60_000 }),
    ),
  );
});
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.close()));
  await world.close();
});

/** Every connection gets all of `batch`, half of them backwards. */
async function fromAll<T, R>(batch: readonly T[], work: (gate: PostgresGate, batch: T[]) => Promise<R>): Promise<R[]> {
  const backwards = [...batch].reverse();
  return Promise.all(pools.map((pool, index) => work(new PostgresGate(pool), index % 2 === 0 ? [...batch] : backwards)));
}

const DEADLOCKS = statement('deadlocks', 'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()');
/** The pools try again after a deadlock, so that it reaches nobody; the server has counted it. */
const deadlocks = async () => {
  await Promise.all(pools.map((pool) => pool.rows(statement('flush', 'SELECT pg_stat_force_next_flush()'))));
  await Promise.all(pools.map((pool) => pool.rows(statement('one', 'SELECT 1'))));
  return (await world.admin.rows<{ deadlocks: number }>(DEADLOCKS))[0]!.deadlocks;
};

test('the same 200 ids from 8 connections in both orders: one claim each, and no deadlock', async () => {
  await claimTheSameIds(10);
  expect(await deadlocks()).toBe(0);
});

test('and deadlocks would be noticed, and still reach nobody: a gate that inserts in the order of the items', async () => {
  await world.changeFunction('decide', 'ORDER BY p.occurrence_id', 'ORDER BY p.ord');
  for (let tries = 0; tries < 20 && (await deadlocks()) === 0; tries++) await claimTheSameIds(1);
  expect(await deadlocks()).toBeGreaterThan(0);
});

async function claimTheSameIds(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const schedules = await Promise.all([1, 2, 3].map(() => world.openSchedule()));
    const items = Array.from({ length: 200 }, (_, position) => dueItem(schedules[position % 3]!, { position }));
    const claims = new Map<string, number>();
    await fromAll(items, async (gate, batch) => {
      const verdicts = await gate.decide(batch, OPTIONS);
      batch.forEach(({ occurrenceId }, index) => {
        const id = occurrenceId.toString('hex');
        const verdict = verdicts[index]!;
        if (verdict.kind === 'claimed') claims.set(id, (claims.get(id) ?? 0) + 1);
        else expect(verdict).toEqual({ kind: 'silent', why: 'duplicate' });
      });
    });
    expect(claims.size).toBe(200);
    expect([...claims.values()].every((count) => count === 1)).toBe(true);
  }
}

test('results, receipts, sweeps and questions about the same ids at once: each claim ends once', async () => {
  for (let round = 0; round < 5; round++) {
    const schedule = await world.openSchedule();
    const items = Array.from({ length: 200 }, (_, position) => dueItem(schedule, { position }));
    await world.gate.decide(items, OPTIONS);
    const outcomes = items.map((item, index): AttemptResult => {
      const given = results(item);
      return [given.accepted, given.failed, { ...given.retry, nextAttemptAt: 0 }, given.uncertain][index % 4]!;
    });
    const applied = await fromAll(outcomes, async (gate, batch) => {
      const recorded = await gate.recordResults(batch, RESULTS);
      await gate.recordEvidence(batch.map((result) => evidence(result, 'delivered')));
      await gate.sweepDeadlines({ ...RESULTS, graceMs: 5_000 });
      const again = await gate.decide(
        batch.map((result) => items.find((item) => item.occurrenceId.equals(result.occurrenceId))!),
        OPTIONS,
      );
      // Evidence was recorded before anybody could ask for a second attempt.
      expect(again.filter((verdict) => verdict.kind === 'claimed' && verdict.attempt !== 2)).toEqual([]);
      return recorded.filter((one) => one.applied).length;
    });
    const total = applied.reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThanOrEqual(150);
    const states = await Promise.all(items.map(async (item) => (await world.claim(item))!.state));
    expect(new Set(states)).toEqual(new Set(['accepted', 'failed']));
    expect(states.filter((state) => state === 'failed').length).toBeLessThanOrEqual(50);
  }
});
