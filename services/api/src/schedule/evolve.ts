import type { ScheduleEvent } from './schedule-events';
import { initialState, type ExistingSchedule, type ScheduleState } from './schedule-state';

/** The next state. An event that can't follow the state is a damaged stream: a fault, not a refusal. */
export function evolve(state: ScheduleState, event: ScheduleEvent): ExistingSchedule {
  if (event.name === 'requested') {
    if (state.status !== 'none') throw new Error('a schedule is requested once');
    const { scheduleId, tenantId, mode, externalId, runId, definition } = event.data;
    return {
      status: 'active',
      scheduleId,
      tenantId,
      mode,
      externalId,
      runId,
      version: 1,
      revision: 1,
      definition,
      createdAtMs: event.atMs,
      createdBy: event.by,
      paused: null,
      pausedVersion: null,
      cancelled: null,
      cancelledVersion: null,
    };
  }
  if (state.status === 'none') throw new Error(`a stream can not begin with ${event.name}`);
  const version = state.version + 1;
  switch (event.name) {
    case 'revised':
      return {
        ...state,
        version,
        revision: state.revision + (event.data.raisesRevision ? 1 : 0),
        definition: event.data.definition,
      };
    case 'paused':
      return { ...state, version, paused: { atMs: event.atMs, by: event.by, reason: event.data.reason }, pausedVersion: version };
    case 'resumed':
      return { ...state, version, paused: null, pausedVersion: null };
    case 'cancelled':
      return {
        ...state,
        version,
        status: 'cancelled',
        paused: null,
        pausedVersion: null,
        cancelled: { atMs: event.atMs, by: event.by, reason: event.data.reason },
        cancelledVersion: version,
      };
    default:
      return event satisfies never;
  }
}

export function replay(events: readonly ScheduleEvent[]): ScheduleState {
  return events.reduce<ScheduleState>(evolve, initialState);
}
