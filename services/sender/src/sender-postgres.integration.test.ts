import { join } from 'node:path';
import { projectRoot } from '#local-stack/project-root';
import { startPostgres, type RunningPostgres } from '#local-stack/start-postgres';
import { waitUntil } from '#runtime/wait-until';
import { SenderUnderTest } from './test-support/sender-under-test';

let under: SenderUnderTest;
let postgres: RunningPostgres;

beforeAll(async () => {
  // A server of its own, since it is killed: everything of this file, the template database included, goes there.
  postgres = await startPostgres({
    folder: join(projectRoot(), '.punctual', `sender-postgres-${process.pid}`),
    removeOnStop: true,
  });
  process.env.DATABASE_URL = postgres.url;
  under = await SenderUnderTest.open({ magicRecipients: false });
  await under.startSender({ EVIDENCE_WINDOW_MS: '2000' });
}, 120_000);
afterAll(async () => {
  await under?.close();
  await postgres?.stop();
});

describe('when PostgreSQL dies under load', () => {
  it('sends nothing twice, loses nothing, and goes on when it is back', async () => {
    const number = await under.addNumber(80, { enforced: false });
    const run = await under.addRun(number, 600);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 100);
    for (let time = 0; time < 3; time++) {
      await postgres.kill();
      await postgres.restart();
      const before = under.eventsOf(run, 'MessageSubmitted').length;
      await waitUntil('sending goes on', () => under.eventsOf(run, 'MessageSubmitted').length > before + 40, {
        deadlineMs: 20_000,
      });
    }
    const ended = () => under.eventsOf(run, 'MessageSubmitted').length + under.eventsOf(run, 'OutcomeUnconfirmed').length;
    await waitUntil('every message has an end', () => ended() >= 600, { deadlineMs: 60_000 });

    const { recipients, deliveries } = await under.simulator.control.summary();
    expect(recipients.most).toBe(1);
    // What was delivered is submitted or honestly unconfirmed; what is submitted was delivered.
    expect(under.eventsOf(run, 'MessageSubmitted').length).toBeLessThanOrEqual(deliveries);
    expect(ended()).toBe(600);
  }, 180_000);
});
