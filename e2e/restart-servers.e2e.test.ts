import { join } from 'node:path';
import { pickPorts } from '#local-stack/pick-port';
import { projectRoot } from '#local-stack/project-root';
import { startLocalStack, type LocalStack } from '#local-stack/start-local-stack';
import { waitUntil } from '#runtime/wait-until';
import { startPlatform } from '../tools/local-platform/src/start-platform';
import {
  messagesOf,
  received,
  recipients,
  schedule,
  SHORT_DEADLINES,
  startInstallation,
  sumOf,
  untilSettled,
  upload,
  type Installation,
} from './support/installation';
import { arrivals, contradictions, expectPaced, longestGap } from './support/oracle';

// As in the pace tests: a machine that stands still says nothing about our pace.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

describe('servers that go away', () => {
  let stack: LocalStack;
  let on: Installation;
  let from = 0;

  beforeAll(async () => {
    stack = await startLocalStack({
      folder: join(projectRoot(), '.punctual', `e2e-servers-${process.pid}`),
      removeOnStop: true,
      environment: {},
    });
    on = await startInstallation({ rates: [80], servers: stack.env, instances: { sender: 2 } });
  });
  afterAll(async () => {
    await on?.stop();
    await stack?.stop();
  });

  /** A campaign during which a server is taken away and comes back. */
  async function campaignThrough(outage: () => Promise<void>): Promise<void> {
    const people = recipients(800, from);
    from += 800;
    const before = (await on.simulator.control.summary()).deliveries;
    const { runId } = await schedule(on.api, on.numbers[0]!, { audienceId: await upload(on.api, people) });
    await waitUntil('a quarter of it to be out', async () => (await on.simulator.control.summary()).deliveries >= before + 200, {
      deadlineMs: 30_000,
    });
    await outage();
    const run = await untilSettled(on.api, runId, 90_000);
    expect(sumOf(run.counts)).toBe(800);
    const counts = await received(on.simulator, on.numbers[0]!.phoneNumberId);
    expect(contradictions(await messagesOf(on.api, runId), counts)).toEqual([]);
  }

  it('Redis, killed under load: a gap of at most 4 s, pace on both sides of it, and everything arrives', async () => {
    const before = (await on.simulator.control.summary()).rejectedByRate;
    const since = (await arrivals(on.simulator, on.numbers[0]!.phoneNumberId)).length;
    let untilKilled = 0;
    await campaignThrough(async () => {
      untilKilled = (await arrivals(on.simulator, on.numbers[0]!.phoneNumberId)).length - since;
      await stack.redis!.kill();
      await stack.redis!.restart();
    });
    const times = (await arrivals(on.simulator, on.numbers[0]!.phoneNumberId)).slice(since);
    const gap = longestGap(times);
    expect(gap.ms).toBeLessThanOrEqual(4_000);
    expect((await on.simulator.control.summary()).rejectedByRate - before).toBe(0);
    // Between the death of Redis and the gap numbers are paced at half their rate by the local clock.
    expectPaced(times.slice(0, untilKilled), 80);
    expectPaced(times.slice(gap.index), 80);
  });

  it('PostgreSQL, killed under load', async () => {
    await campaignThrough(async () => {
      await stack.postgres!.kill();
      await stack.postgres!.restart();
    });
  });

  it('Kafka, killed under load', async () => {
    await campaignThrough(async () => {
      await stack.kafka!.kill(1);
      await stack.kafka!.restart(1);
    });
  });
});

describe('services that are started first', () => {
  it('wait for their servers and for the schema, say so, and begin', async () => {
    const [kafka, postgres, redis] = await pickPorts(3);
    const folder = join(projectRoot(), '.punctual', `e2e-late-${process.pid}`);
    const platform = await startPlatform({
      servers: {
        KAFKA_BROKERS: `127.0.0.1:${kafka}`,
        DATABASE_URL: `postgres://postgres@127.0.0.1:${postgres}/punctual`,
        REDIS_URL: `redis://127.0.0.1:${redis}`,
      },
      folder: join(folder, 'services'),
      simulatorUrl: 'http://127.0.0.1:9',
      settings: SHORT_DEADLINES,
      withoutMigration: true,
      withoutWaiting: true,
    });
    let stack: LocalStack | undefined;
    try {
      for (const service of platform.services) {
        await waitUntil(`${service.name} to say what it waits for`, async () => {
          if (await service.isReady()) throw new Error(`${service.name} says it is ready without any server`);
          return service.log().length > 0;
        });
      }
      stack = await startLocalStack({
        folder: join(folder, 'servers'),
        removeOnStop: true,
        environment: {},
        ports: { kafka, postgres, redis },
      });
      expect(stack.env.KAFKA_BROKERS).toBe(`127.0.0.1:${kafka}`);
      await platform.migrate();
      await platform.untilReady();
      expect(platform.services.every((service) => service.pid !== undefined)).toBe(true);
    } finally {
      await platform.stop();
      await stack?.stop();
    }
  });
});
