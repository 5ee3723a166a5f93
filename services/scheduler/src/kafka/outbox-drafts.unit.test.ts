import { Codec } from '#contracts/codec';
import { encodeDraft, toDraft } from './outbox-drafts';

const codec = new Codec();
const refused = {
  name: 'RecipientsRefused',
  event: {
    at: 5,
    runId: '01'.repeat(12),
    scheduleId: '02'.repeat(16),
    tenantId: '03'.repeat(16),
    revision: 1,
    fromPosition: 10,
    untilPosition: 20,
    count: 10,
    status: 'cancelled',
    reason: 'cancelled',
  },
};

const decoded = (draft: { name: string; event: Record<string, unknown> }) =>
  codec.decode(encodeDraft(codec, draft)) as { name: string; event: { eventId: string } };

it('gives what the database wrote an id that follows from what it says', () => {
  const first = decoded(refused);
  const again = decoded({ ...refused, event: { ...refused.event, at: 6 } });
  const other = decoded({ ...refused, event: { ...refused.event, untilPosition: 21, count: 11 } });
  expect(first.event.eventId).toMatch(/^evt_[0-9a-z]{26}$/);
  expect(again.event.eventId).toBe(first.event.eventId);
  expect(other.event.eventId).not.toBe(first.event.eventId);
});

it('brings an event through the outbox unchanged', () => {
  const event = {
    eventId: 'evt_1',
    at: 5,
    runId: Buffer.alloc(12, 1),
    scheduleId: Buffer.alloc(16, 2),
    revision: 1,
    released: 3,
  };
  const { eventId: _, ...rest } = event;
  expect(decoded(toDraft('RunReleased', event))).toMatchObject({ name: 'RunReleased', event: rest });
});
