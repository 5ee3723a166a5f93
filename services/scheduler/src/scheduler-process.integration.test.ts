import { partitionFor } from '#contracts/murmur2';
import { topicName } from '#contracts/topics';
import { silentLog } from '#runtime/log';
import { openAdmin } from '#runtime/kafka/open-admin';
import { openBatchConsumer } from '#runtime/kafka/open-batch-consumer';
import { waitUntil } from '#runtime/wait-until';
import { serverAddress } from '../../../test-support/isolation';
import { readConfig } from './config';
import { composeScheduler, type Scheduler } from './start-scheduler';
import { Stage, type Campaign, type Executions, type Number as SendingNumber } from '../test-support/stage';

let stage: Stage;
let executions: Executions;
let schedulers: Scheduler[];

const start = async (instance: string): Promise<Scheduler> => {
  const config = readConfig({
    KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
    DATABASE_URL: stage.test.urlFor('punctual_scheduler'),
    TOPIC_PREFIX: stage.prefix,
    PORT: '0',
    INSTANCE_ID: instance,
    LOG_LEVEL: 'silent',
  });
  const scheduler = composeScheduler(config, silentLog);
  await scheduler.lifecycle.start();
  return scheduler;
};

beforeAll(async () => {
  stage = await Stage.open();
  executions = await stage.executions();
  schedulers = await Promise.all(['one', 'two'].map(start));
});

afterAll(async () => {
  for (const { lifecycle } of schedulers ?? []) await lifecycle.stop();
  await stage?.close();
});

const schedulesTopic = () => topicName(stage.prefix, 'schedules');

async function tell(...records: Array<{ key: string; value: Buffer }>): Promise<void> {
  for (const { key, value } of records)
    await stage.producer.send(schedulesTopic(), partitionFor(key, 6), [{ key: Buffer.from(key), value }]);
}

const request = ({ event }: Campaign) => ({ key: event.scheduleId, value: stage.codec.encode('ScheduleRequested', event) });

/** Reports credit again and again, as a sender does, until everybody has arrived. */
async function untilArrived(numbers: SendingNumber[], campaigns: Campaign[]): Promise<void> {
  await waitUntil(
    'everybody to be handed over',
    async () => {
      await stage.reportCredit(numbers, 500);
      return campaigns.every((campaign) => executions.of(campaign).length >= campaign.recipients);
    },
    { deadlineMs: 30_000, everyMs: 100 },
  );
}

it('releases at the instant and never before it, from the topic of schedules to that of executions', async () => {
  const numbers = Array.from({ length: 4 }, () => stage.number());
  await stage.reportCredit(numbers, 500);
  // Far enough away for everything to be planned by then, on a busy machine too.
  const soon = Date.now() + 6_000;
  const campaigns = await stage.campaigns(
    Array.from({ length: 60 }, (_, index) => ({ number: numbers[index % 4]!, recipients: 1, dueAt: soon + index * 17 })),
  );
  await tell(...campaigns.map(request));
  await untilArrived(numbers, campaigns);
  const lags = campaigns.map((campaign) => {
    const [execution] = executions.of(campaign);
    return execution!.releasedAt - execution!.dueAt;
  });
  expect(Math.min(...lags)).toBeGreaterThanOrEqual(0);
  // A loaded machine makes single ones late; a scheduler that polled every second would make most of them so.
  expect(lags.sort((a, b) => a - b)[Math.floor(lags.length / 2)]).toBeLessThan(250);
  expect(
    executions.all.filter(({ execution }) => campaigns.some(({ scheduleId }) => scheduleId.equals(execution.scheduleId))),
  ).toHaveLength(60);
});

it('tells what became of the runs on the topic of runs', async () => {
  const campaign = await stage.campaign({ recipients: 700 });
  const told: string[] = [];
  const consumer = openBatchConsumer({
    brokers: serverAddress('KAFKA_BROKERS').split(','),
    clientId: 'runs-test',
    groupId: `${stage.prefix}runs-test`,
  });
  await consumer.run([topicName(stage.prefix, 'runs')], async ({ records, partition }) => {
    for (const { key, value } of records)
      if (key!.equals(campaign.runId)) told.push(`${stage.codec.decode(value).name} ${partition === partitionFor(key!, 6)}`);
  });
  stage.stops.push(() => consumer.stop());
  await tell(request(campaign));
  await untilArrived([campaign.number], [campaign]);
  await waitUntil('the news of the run', () => told.length >= 2);
  expect(told).toEqual(['RunPlanned true', 'RunReleased true']);
});

it('parks what it can not read and plans what comes behind it', async () => {
  const campaign = await stage.campaign();
  const { event } = campaign;
  await tell(
    { key: event.scheduleId, value: Buffer.from('not an event') },
    { key: event.scheduleId, value: stage.codec.encode('ScheduleRequested', { ...event, audienceId: 'aud_nonsense' }) },
    request(campaign),
  );
  await untilArrived([campaign.number], [campaign]);
  const admin = await openAdmin({ brokers: serverAddress('KAFKA_BROKERS').split(','), clientId: 'dead-test' });
  expect(await admin.partitionCount(`${schedulesTopic()}.dead`)).toBe(1);
  await admin.close();
});

it('goes on with one instance when the other is stopped, without handing anybody over twice', async () => {
  const numbers = Array.from({ length: 6 }, () => stage.number());
  const campaigns = await stage.campaigns(numbers.map((number) => ({ number, recipients: 2_000 })));
  await tell(...campaigns.map(request));
  await waitUntil('the release to be under way', async () => {
    await stage.reportCredit(numbers, 300);
    return executions.of(campaigns[0]!).length > 0;
  });
  await schedulers.pop()!.lifecycle.stop();
  await untilArrived(numbers, campaigns);
  for (const campaign of campaigns) {
    expect(executions.of(campaign)).toHaveLength(2_000);
    expect(new Set(executions.of(campaign).map(({ position }) => position)).size).toBe(2_000);
  }
});
