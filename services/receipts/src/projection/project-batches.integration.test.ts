import { formatId } from '#contracts/ids';
import { plans, Stage, tells, tokenOf, webhook, type Told } from '../../test-support/stage';

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage?.close());
beforeEach(() => stage.takeOutbox());

const DUE = 1_782_900_000_000;
const seconds = DUE / 1_000;

it('brings what a sender and a provider say into one row, and tells it with ref and masked number', async () => {
  const run = await stage.campaign(3, { dueAt: DUE });
  const projection = stage.projection();
  await projection.project([stage.batch('runs', 0, [plans.planned(run)])]);
  await projection.project([stage.batch('deliveries', 0, [tells.submitted(run, 1, { wamid: 'wamid.one' })])]);
  await projection.project([
    stage.batch('webhooks', 0, [webhook([{ wamid: 'wamid.one', token: tokenOf(run, 1), status: 'sent', at: seconds + 2 }])]),
  ]);
  await projection.project([
    stage.batch('webhooks', 0, [webhook([{ wamid: 'wamid.one', token: tokenOf(run, 1), status: 'delivered', at: seconds + 3 }])]),
  ]);

  expect(await stage.messages(run)).toEqual([
    expect.objectContaining({
      position: 1,
      revision: 1,
      status: 'delivered',
      step: 2,
      attempts: 1,
      reason: null,
      submitted_at: new Date(DUE + 500),
      sent_at: new Date(DUE + 2_000),
      delivered_at: new Date(DUE + 3_000),
      read_at: null,
      failed_at: null,
      error_code: null,
      provider_message_id: 'wamid.one',
      waits: [{ reason: 'pace', ms: 12 }],
      correction: false,
    }),
  ]);
  expect(await stage.counts(run)).toEqual({ delivered: 1 });
  const told = await stage.takeOutbox();
  const changes = told.filter(
    (one): one is Extract<Told, { name: 'MessageStatusChanged' }> => one.name === 'MessageStatusChanged',
  );
  expect(changes.map(({ event }) => [event.previousStatus, event.status, event.final])).toEqual([
    [null, 'submitted', false],
    ['submitted', 'sent', false],
    ['sent', 'delivered', true],
  ]);
  expect(changes[2]!.event).toMatchObject({
    messageId: formatId('msg', run.occurrence(1)),
    runId: formatId('run', run.runId),
    ref: 'customer-1',
    to: '+49151******01',
    labels: { campaign: 'summer' },
    mode: 'test',
    channel: 'whatsapp',
    reachedProvider: 'yes',
    correction: false,
    evidence: { sentAt: DUE + 2_000, deliveredAt: DUE + 3_000, readAt: null, failedAt: null },
  });
  const sequences = changes.map(({ event }) => event.sequence);
  expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
  expect(new Set(sequences).size).toBe(3);
  expect(told.filter(({ name }) => name === 'ReceiptRecorded')).toEqual([]);
});
