import fc from 'fast-check';
import type { AnyEvent, ScheduleCancelled, ScheduleRequested } from '#contracts/events';
import { formatId, uuidText } from '#contracts/ids';
import { UnexpectedEventError, foldChanges } from './fold-changes';
import { UnplannableError } from './plan-runs';

const idOf = (n: number): Buffer => Buffer.alloc(16, n);
const scheduleIdOf = (n: number): string => formatId('sch', idOf(n));

function requested(schedule: number, version: number): Extract<AnyEvent, { name: 'ScheduleRequested' }> {
  const event: ScheduleRequested = {
    eventId: formatId('evt', idOf(version)),
    at: 1_000,
    tenantId: formatId('ten', idOf(1)),
    scheduleId: scheduleIdOf(schedule),
    externalId: null,
    version,
    revision: version,
    mode: 'live',
    channel: 'whatsapp',
    numberId: formatId('num', idOf(2)),
    providerIdentity: 'whatsapp_cloud:123',
    category: 'utility',
    priority: 3,
    labels: { team: 'billing' },
    onUncertain: 'leave',
    audienceId: formatId('aud', idOf(3)),
    chunkCount: 1,
    recipients: version * 10,
    slots: [
      {
        slot: 'once',
        runId: formatId('run', Buffer.alloc(12, schedule)),
        timeZone: 'Asia/Kolkata',
        local: '2027-01-01T09:00:00',
        rule: 'exact',
        tzdb: '2025c',
        dueAt: 5_000 + version,
        validUntil: null,
      },
    ],
    actor: 'key',
    correlationId: 'c',
    traceparent: null,
  };
  return { name: 'ScheduleRequested', event };
}

const changed = <N extends 'ScheduleCancelled' | 'SchedulePaused' | 'ScheduleResumed'>(
  name: N,
  schedule: number,
  version: number,
): AnyEvent => {
  const { event } = requested(schedule, version);
  const { eventId, at, tenantId, scheduleId, externalId, revision, actor, correlationId, traceparent } = event;
  const change: ScheduleCancelled = {
    eventId,
    at,
    tenantId,
    scheduleId,
    externalId,
    version,
    revision,
    actor,
    reason: null,
    correlationId,
    traceparent,
  };
  return { name, event: change } as AnyEvent;
};

it('plans one run for each slot, with everything that a release needs', () => {
  const { plans } = foldChanges([requested(7, 1)]);
  expect(plans).toMatchObject([
    {
      runId: Buffer.alloc(12, 7).toString('hex'),
      scheduleId: uuidText(idOf(7)),
      numberId: uuidText(idOf(2)),
      providerIdentity: 'whatsapp_cloud:123',
      total: 10,
      priority: 3,
      dueAt: 5_001,
      event: { total: 10, slot: 'once', mode: 'live', labels: { team: 'billing' } },
    },
  ]);
});

it('gives the announcement of the same plan the same id, and another revision another', () => {
  const idsOf = (version: number) => foldChanges([requested(7, version)]).plans.map(({ event }) => event.eventId);
  expect(idsOf(1)).toEqual(idsOf(1));
  expect(idsOf(2)).not.toEqual(idsOf(1));
});

it('keeps the newest plan and the newest cancel of each schedule, in whatever order and however often they come', () => {
  const events = [
    requested(1, 1),
    requested(1, 3),
    changed('ScheduleCancelled', 1, 4),
    requested(2, 1),
    changed('SchedulePaused', 2, 2),
    changed('ScheduleResumed', 2, 3),
  ];
  fc.assert(
    fc.property(fc.shuffledSubarray([...events, ...events], { minLength: events.length * 2 }), (shuffled) => {
      const { plans, cancelled, resumed } = foldChanges(shuffled);
      expect(plans.map(({ scheduleId, revision }) => [scheduleId, revision]).sort()).toEqual([
        [uuidText(idOf(1)), 3],
        [uuidText(idOf(2)), 1],
      ]);
      expect(cancelled).toEqual([{ scheduleId: uuidText(idOf(1)), version: 4 }]);
      expect(resumed).toEqual([uuidText(idOf(2))]);
    }),
  );
});

it('refuses what can not be planned, so that the record is parked', () => {
  const { event } = requested(1, 1);
  expect(() => foldChanges([{ name: 'ScheduleRequested', event: { ...event, audienceId: 'aud_nonsense' } }])).toThrow(
    UnplannableError,
  );
  expect(() => foldChanges([{ name: 'RunReleased', event: {} as never }])).toThrow(UnexpectedEventError);
});
