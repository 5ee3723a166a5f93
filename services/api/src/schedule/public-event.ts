import type { EventName, Events } from '#contracts/events';
import { derivedEventId, formatId, uuidBytes } from '#contracts/ids';
import type { ScheduleEvent } from './schedule-events';
import type { ExistingSchedule } from './schedule-state';

type PublicName = Extract<
  EventName,
  'ScheduleRequested' | 'ScheduleRevised' | 'SchedulePaused' | 'ScheduleResumed' | 'ScheduleCancelled'
>;
export type PublicEvent = { [N in PublicName]: { name: N; type: string; event: Events[N] } }[PublicName];

export interface Origin {
  correlationId: string;
  traceparent: string | null;
}

/** What others are told of an event; `state` is the state after it. */
export function publicEvent(event: ScheduleEvent, state: ExistingSchedule, origin: Origin): PublicEvent {
  const envelope = {
    eventId: derivedEventId('schedule', uuidBytes(state.scheduleId), state.version),
    at: event.atMs,
    tenantId: formatId('ten', uuidBytes(state.tenantId)),
    scheduleId: formatId('sch', uuidBytes(state.scheduleId)),
    externalId: state.externalId,
    version: state.version,
    revision: state.revision,
    actor: event.by,
    ...origin,
  };
  switch (event.name) {
    case 'requested':
      return { name: 'ScheduleRequested', type: 'punctual.schedule.requested', event: { ...envelope, ...contents(state) } };
    case 'revised':
      return { name: 'ScheduleRevised', type: 'punctual.schedule.revised', event: { ...envelope, ...contents(state) } };
    case 'paused':
      return { name: 'SchedulePaused', type: 'punctual.schedule.paused', event: { ...envelope, reason: event.data.reason } };
    case 'resumed':
      return { name: 'ScheduleResumed', type: 'punctual.schedule.resumed', event: { ...envelope, reason: event.data.reason } };
    case 'cancelled':
      return {
        name: 'ScheduleCancelled',
        type: 'punctual.schedule.cancelled',
        event: { ...envelope, reason: event.data.reason },
      };
    default:
      return event satisfies never;
  }
}

function contents(state: ExistingSchedule) {
  const { definition } = state;
  const { slot } = definition;
  return {
    mode: state.mode,
    channel: definition.number.channel,
    numberId: formatId('num', uuidBytes(definition.number.id)),
    providerIdentity: definition.number.providerIdentity,
    category: definition.category,
    priority: definition.priority,
    labels: definition.labels,
    onUncertain: definition.onUncertain,
    audienceId: formatId('aud', uuidBytes(definition.audience.id)),
    chunkCount: definition.audience.chunkCount,
    recipients: definition.audience.accepted,
    slots: [
      {
        slot: slot.slot,
        runId: formatId('run', Buffer.from(state.runId, 'hex')),
        timeZone: slot.timeZone,
        local: slot.local,
        rule: slot.rule,
        tzdb: slot.tzdb,
        dueAt: slot.dueAtMs,
        validUntil: slot.validUntilMs,
      },
    ],
  };
}
