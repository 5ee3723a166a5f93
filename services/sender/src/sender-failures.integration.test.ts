import { join } from 'node:path';
import { projectRoot } from '#local-stack/project-root';
import { startRedis, type RunningRedis } from '#local-stack/start-redis';
import { statement } from '#runtime/postgres/sql-file';
import { waitUntil } from '#runtime/wait-until';
import { mostInASecond } from './test-support/most-in-a-second';
import { SenderUnderTest, type TestRun } from './test-support/sender-under-test';

const HELD_TEMPLATES = statement('held', 'SELECT template_key FROM sender.template_hold');
const SUPPRESSED = statement('suppressed', 'SELECT recipient_hash FROM sender.suppression');

let under: SenderUnderTest;
let redis: RunningRedis;

beforeAll(async () => {
  redis = await startRedis({ folder: join(projectRoot(), '.punctual', `sender-redis-${process.pid}`), removeOnStop: true });
  under = await SenderUnderTest.open();
  await under.startSender({ REDIS_URL: redis.url });
});
afterAll(async () => {
  await under?.close();
  await redis?.stop();
});

const calledAt = (run: TestRun) =>
  under
    .eventsOf(run, 'MessageSubmitted')
    .map((event) => event.calledAt)
    .sort((a, b) => a - b);

describe('without Redis', () => {
  it('goes on at no more than the rate while Redis dies and comes back', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 500);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 100);
    await redis.kill();
    const killedAt = Date.now();
    await waitUntil('messages go on without it', () => calledAt(run).filter((at) => at > killedAt + 500).length > 20);
    await redis.restart();
    const backAt = Date.now();
    await under.waitForEvents(run, 'MessageSubmitted', 500, 30_000);
    const called = calledAt(run);
    expect(mostInASecond(called)).toBeLessThanOrEqual(80);
    const local = called.filter((at) => at > killedAt + 500 && at <= killedAt + 1_500).length;
    expect(local).toBeLessThanOrEqual(50);
    // Two seconds of silence after a run of Redis that nobody knew, and not much more.
    const gaps = called.slice(1).map((at, i) => (called[i]! > backAt - 1_000 ? at - called[i]! : 0));
    expect(Math.max(...gaps)).toBeGreaterThan(1_500);
    expect(Math.max(...gaps)).toBeLessThan(4_000);
  });

  it('goes on at half the rate while Redis hangs', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 200);
    redis.pause();
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 60);
    redis.resume();
    await under.waitForEvents(run, 'MessageSubmitted', 200, 30_000);
    expect(mostInASecond(calledAt(run))).toBeLessThanOrEqual(80);
  });
});

describe('without a provider', () => {
  it('keeps everything while nobody listens, and sends it when somebody does', async () => {
    const away = await SenderUnderTest.open();
    try {
      const sender = await away.startSender({ REDIS_URL: redis.url, WHATSAPP_TEST_URL: 'http://127.0.0.1:1' });
      const number = await away.addNumber(80);
      const run = await away.addRun(number, 40);
      await away.release(run);
      const [held] = await away.waitForEvents(run, 'MessageHeld', 5);
      expect(held).toMatchObject({ reason: 'circuit' });
      await waitUntil('no credit is given', async () => (await away.creditOf(number)) === 0);
      await sender.lifecycle.stop();
      await away.startSender({ REDIS_URL: redis.url });
      await away.waitForEvents(run, 'MessageSubmitted', 40, 60_000);
      expect(away.eventsOf(run, 'OutcomeUncertain')).toEqual([]);
      expect((await away.simulator.control.summary()).deliveries).toBe(40);
    } finally {
      await away.close();
    }
  });
});

describe('a template that is paused', () => {
  it('holds its messages and no others', async () => {
    const number = await under.addNumber(80);
    await under.simulator.control.registerTemplates({ name: 'paused_one', language: 'en_US', status: 'PAUSED' });
    const paused = await under.addRun(number, 10, { content: { template: { name: 'paused_one', language: 'en_US' } } });
    const free = await under.addRun(number, 10, { content: { template: { name: 'free_one', language: 'en_US' } } });
    await under.release(paused);
    await waitUntil('the template is held', async () => (await under.admin.rows(HELD_TEMPLATES)).length === 1);
    await under.release(free);
    await under.waitForEvents(free, 'MessageSubmitted', 10);
    await waitUntil(
      'all ten wait',
      async () =>
        (await under.admin.rows(statement('w', 'SELECT 1 FROM sender.waiting WHERE schedule_id = $1'), [paused.scheduleId]))
          .length === 10,
    );
    expect(under.eventsOf(paused, 'MessageFailed')).toEqual([]);
  });
});

describe('a recipient who opted out', () => {
  it('fails once and is never asked again', async () => {
    const number = await under.addNumber(80);
    const first = await under.addRun(number, ['+12025550158']);
    await under.release(first);
    const [failed] = await under.waitForEvents(first, 'MessageFailed', 1);
    expect(failed).toMatchObject({ code: 'recipient_opted_out' });
    await waitUntil('the suppression is stored', async () => (await under.admin.rows(SUPPRESSED)).length === 1);
    const second = await under.addRun(number, ['+12025550158']);
    await under.release(second);
    const [refused] = await under.waitForEvents(second, 'MessageRefused', 1);
    expect(refused).toMatchObject({ status: 'refused', reason: 'suppressed' });
    expect((await under.simulator.control.summary()).numbers[number.providerNumberId]!.received).toBe(1);
  });
});

describe('a run whose template parameters are wrong', () => {
  it('is held after ten outcomes', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 400, { content: { text: 'Hi {{nickname}}' } });
    await under.release(run);
    await waitUntil('the run is held', () =>
      under.events.some(({ name, event }) => name === 'RunHeld' && (event as { runId: Buffer }).runId.equals(run.runId)),
    );
    await waitUntil(
      'the rest waits',
      () => under.eventsOf(run, 'MessageHeld').length + under.eventsOf(run, 'MessageFailed').length === 400,
    );
    expect(under.eventsOf(run, 'MessageFailed').length).toBeLessThan(400);
  });
});

describe('a new number', () => {
  it('is found when its first message comes before it was read', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 1);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 1, 5_000);
  });
});
