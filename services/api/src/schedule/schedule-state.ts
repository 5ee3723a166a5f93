import type { Mode, ScheduleDefinition } from './definition';

export interface Mark {
  atMs: number;
  by: string;
  reason: string | null;
}

/** A schedule after all its events so far. */
export interface ExistingSchedule {
  status: 'active' | 'cancelled';
  scheduleId: string;
  tenantId: string;
  mode: Mode;
  externalId: string | null;
  runId: string;
  version: number;
  revision: number;
  definition: ScheduleDefinition;
  createdAtMs: number;
  createdBy: string;
  paused: Mark | null;
  pausedVersion: number | null;
  cancelled: Mark | null;
  cancelledVersion: number | null;
}

export type ScheduleState = { status: 'none' } | ExistingSchedule;

export const initialState: ScheduleState = { status: 'none' };
