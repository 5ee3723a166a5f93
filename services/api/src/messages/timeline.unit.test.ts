import type { ExistingSchedule } from '../schedule/schedule-state';
import type { MergedMessage } from './merge-message';
import type { MessageFacts } from './message-facts';
import { timeline, type AttemptEntry, type EvidenceEntry } from './timeline';

const DUE = Date.parse('2026-07-01T10:00:00.000Z');
const schedule = {
  createdAtMs: DUE - 60_000,
  definition: {
    slot: { dueAtMs: DUE, validUntilMs: null, local: '2026-07-01T12:00:00', timeZone: 'Europe/Berlin' },
    number: { providerIdentity: 'whatsapp_cloud:700600500400301' },
  },
} as unknown as ExistingSchedule;
const facts: MessageFacts = { claim: null, waiting: null, projected: null, range: null };
const merged = { status: 'read', reason: null } as unknown as MergedMessage;

const attempt = (calledAtMs: number): AttemptEntry => ({
  attempt: 1,
  begunAtMs: calledAtMs - 100,
  calledAtMs,
  endedAtMs: calledAtMs + 150,
  outcome: 'accepted',
  errorCode: null,
  providerCode: null,
  text: null,
  waits: null,
  traceId: null,
});
const said = (kind: string, providerAtMs: number, recordedAtMs: number): EvidenceEntry => ({
  attempt: 1,
  kind,
  providerAtMs,
  recordedAtMs,
  code: null,
  providerCode: null,
});
const shown = (evidence: EvidenceEntry[], calledAtMs = DUE + 800) =>
  timeline(schedule, { events: [], attempts: [attempt(calledAtMs)], evidence }, facts, merged, DUE + 60_000);

it('shows what a provider says when we heard it, after the call that it is about, with the whole second that was told', () => {
  const items = shown([said('delivered', DUE, DUE + 1_400), said('sent', DUE, DUE + 900)]);
  expect(items.map(({ what }) => what)).toEqual([
    'time_resolved',
    'due',
    'attempt_begun',
    'provider_called',
    'provider_says_sent',
    'attempt_accepted',
    'provider_says_delivered',
  ]);
  expect(items.map(({ at }) => at)).toEqual(items.map(({ at }) => at).sort());
  expect(items.find(({ what }) => what === 'provider_says_sent')).toEqual({
    at: '2026-07-01T10:00:00.900Z',
    providerAt: '2026-07-01T10:00:00Z',
    what: 'provider_says_sent',
    by: 'whatsapp_cloud',
    detail: { attempt: 1 },
    traceId: null,
  });
  expect(items.filter(({ providerAt }) => providerAt === null)).toHaveLength(5);
});

it('orders what came in one webhook by what was told, and what was told of one second as a message goes its way', () => {
  const heard = DUE + 5_000;
  const second = DUE + 1_000;
  const told = [
    said('read', second, heard),
    said('delivered', second, heard),
    said('failed', DUE, heard),
    said('sent', second, heard),
  ];
  expect(
    shown(told)
      .map(({ what }) => what)
      .filter((what) => what.startsWith('provider_says')),
  ).toEqual(['provider_says_failed', 'provider_says_sent', 'provider_says_delivered', 'provider_says_read']);
});

it('keeps a time that can not be as it was told, at the place where it was heard', () => {
  const items = shown([said('sent', 1_000, DUE + 2_000), said('read', 99_999_999_999_000, DUE + 3_000)]);
  expect(items.slice(-2)).toMatchObject([
    { at: '2026-07-01T10:00:02.000Z', providerAt: '1970-01-01T00:00:01Z' },
    { at: '2026-07-01T10:00:03.000Z', providerAt: '5138-11-16T09:46:39Z' },
  ]);
});
