import type { ScheduleEvent } from './schedule-events';
import type { ExistingSchedule } from './schedule-state';

/** What the gate of the sender has to know of an event, in the same transaction. */
export interface GateChange {
  action: 'open' | 'revise' | 'pause' | 'resume' | 'cancel';
  revision: number;
  details: Record<string, unknown>;
}

export function gateChange(event: ScheduleEvent, state: ExistingSchedule, holdGiveUpMs: number): GateChange | null {
  const { revision } = state;
  switch (event.name) {
    case 'requested':
      return { action: 'open', revision, details: gateDetails(state, holdGiveUpMs) };
    case 'revised':
      if (!event.data.raisesRevision) return null;
      return {
        action: 'revise',
        revision,
        details: { ...gateDetails(state, holdGiveUpMs), audienceChanged: event.data.audienceChanged },
      };
    case 'paused':
      return { action: 'pause', revision, details: {} };
    case 'resumed':
      return { action: 'resume', revision, details: {} };
    case 'cancelled':
      return { action: 'cancel', revision, details: {} };
    default:
      return event satisfies never;
  }
}

function gateDetails(state: ExistingSchedule, holdGiveUpMs: number): Record<string, unknown> {
  const { definition } = state;
  return {
    tenantId: state.tenantId,
    numberId: definition.number.id,
    mode: state.mode,
    channel: definition.number.channel,
    category: definition.category,
    onUncertain: definition.onUncertain,
    retryDelaysMs: definition.retryDelaysMs,
    runId: state.runId,
    holdGiveUpMs,
  };
}
