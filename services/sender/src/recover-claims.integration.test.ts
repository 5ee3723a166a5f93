import { randomBytes } from 'node:crypto';
import { systemClock } from '#runtime/clock';
import { silentLog } from '#runtime/log';
import { PostgresGate } from './postgres/gate';
import { openDatabase, type PostgresDatabase } from '#runtime/postgres/open-database';
import { RecoverClaims } from './recover-claims';
import { SenderUnderTest, type TestRun } from './test-support/sender-under-test';

let under: SenderUnderTest;
let database: PostgresDatabase;
let gate: PostgresGate;

beforeAll(async () => {
  under = await SenderUnderTest.open();
  database = await openDatabase({ url: under.database.urlFor('punctual_sender'), name: 'test' });
  gate = new PostgresGate(database);
});
afterAll(async () => {
  await database.close();
  await under.close();
});

async function claimed(instance: string): Promise<TestRun> {
  const run = await under.addRun(await under.addNumber(80), 1);
  const item = {
    occurrenceId: run.occurrenceIds[0]!,
    scheduleId: run.scheduleId,
    revision: 1,
    numberId: run.number.numberId,
    dueAt: Date.now() - 1_000,
    validUntil: null,
    priority: 5,
    position: 0,
  };
  const [verdict] = await gate.decide([item], { instance, deadlineMs: 10_000 });
  expect(verdict!.kind).toBe('claimed');
  return run;
}

async function recover(
  run: TestRun,
  instance: string,
  isOpen: () => boolean,
): Promise<{ found: number; counts: Record<string, number> }> {
  const results: Parameters<PostgresGate['recordResults']>[0][number][] = [];
  const recovering = new RecoverClaims({
    database,
    clock: systemClock,
    log: silentLog,
    instance,
    isOpen,
    record: (result) => results.push(result),
  });
  recovering.add(run.occurrenceIds[0]!);
  const found = await recovering.recoverOnce();
  await gate.recordResults(results, { evidenceWindowMs: 5_000, resendAfterMs: 3_000 });
  return { found, counts: await under.counts(run) };
}

describe('a claim whose answer was lost', () => {
  it('is recorded as not sent by the process that begun it', async () => {
    const instance = randomBytes(4).toString('hex');
    const run = await claimed(instance);
    expect(await recover(run, instance, () => false)).toEqual({ found: 1, counts: { retry_wait: 1 } });
  });

  it('stays as it is when the process has the message in hand', async () => {
    const instance = randomBytes(4).toString('hex');
    const run = await claimed(instance);
    expect(await recover(run, instance, () => true)).toEqual({ found: 0, counts: { sending: 1 } });
  });

  it("stays as it is when it is another process's", async () => {
    const run = await claimed('another');
    expect(await recover(run, 'this', () => false)).toEqual({ found: 0, counts: { sending: 1 } });
  });
});
