import type { Mode, ScheduleDefinition } from './definition';

interface Stamp {
  atMs: number;
  /** Who did it: `key:<id of the api key>` or `operator`. */
  by: string;
}

export interface Requested extends Stamp {
  name: 'requested';
  data: {
    scheduleId: string;
    tenantId: string;
    mode: Mode;
    externalId: string | null;
    /** Hex; derived from the day of the request, so that no revision moves it. */
    runId: string;
    definition: ScheduleDefinition;
  };
}

export interface Revised extends Stamp {
  name: 'revised';
  data: {
    definition: ScheduleDefinition;
    /** Members of the request that were replaced. */
    changed: string[];
    /** Whether messages that are not released yet follow something new; a new name alone does not count. */
    raisesRevision: boolean;
    audienceChanged: boolean;
  };
}

export interface Paused extends Stamp {
  name: 'paused';
  data: { reason: string | null };
}
export interface Resumed extends Stamp {
  name: 'resumed';
  data: { reason: string | null };
}
export interface Cancelled extends Stamp {
  name: 'cancelled';
  data: { reason: string | null };
}

export type ScheduleEvent = Requested | Revised | Paused | Resumed | Cancelled;
