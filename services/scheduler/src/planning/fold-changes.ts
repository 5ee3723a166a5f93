import type { AnyEvent, ScheduleRequested, ScheduleRevised } from '#contracts/events';
import { uuidText } from '#contracts/ids';
import { bytesOf, planRuns, type PlannedRun } from './plan-runs';

/** What a batch of changes comes to: for each schedule its newest plan, whether it was cancelled, whether it was resumed. Ids are UUID text. */
export interface Changes {
  plans: PlannedRun[];
  cancelled: Array<{ scheduleId: string; version: number }>;
  resumed: string[];
}

export class UnexpectedEventError extends Error {
  override readonly name = 'UnexpectedEventError';
  readonly code = 'event_unexpected';
}

/**
 * Order inside a schedule is the stream's version, not the place in the batch: after a rebalance older events may follow newer ones.
 * Pause changes nothing here, since every release reads the gate itself.
 */
export function foldChanges(events: readonly AnyEvent[]): Changes {
  const newest = new Map<string, ScheduleRequested | ScheduleRevised>();
  const cancelled = new Map<string, number>();
  const resumed = new Set<string>();
  for (const change of events) {
    switch (change.name) {
      case 'ScheduleRequested':
      case 'ScheduleRevised': {
        const known = newest.get(change.event.scheduleId);
        if (!known || known.version < change.event.version) newest.set(change.event.scheduleId, change.event);
        break;
      }
      case 'ScheduleCancelled': {
        const { scheduleId, version } = change.event;
        const id = uuidText(bytesOf('sch', scheduleId));
        cancelled.set(id, Math.max(version, cancelled.get(id) ?? 0));
        break;
      }
      case 'ScheduleResumed':
        resumed.add(uuidText(bytesOf('sch', change.event.scheduleId)));
        break;
      case 'SchedulePaused':
        break;
      default:
        throw new UnexpectedEventError(`${change.name} does not belong to the schedules topic; the record is parked`);
    }
  }
  return {
    plans: [...newest.values()].flatMap(planRuns),
    cancelled: [...cancelled].map(([scheduleId, version]) => ({ scheduleId, version })),
    resumed: [...resumed],
  };
}
