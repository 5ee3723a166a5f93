import type { Mode, ScheduleDefinition } from './definition';
import type { ScheduleEvent } from './schedule-events';
import type { ExistingSchedule, ScheduleState } from './schedule-state';

interface CommandStamp {
  atMs: number;
  by: string;
}

export interface RequestCommand extends CommandStamp {
  name: 'request';
  scheduleId: string;
  tenantId: string;
  mode: Mode;
  externalId: string | null;
  runId: string;
  definition: ScheduleDefinition;
}

export interface ReviseCommand extends CommandStamp {
  name: 'revise';
  definition: ScheduleDefinition;
  expectedVersion: number | 'any';
  /** No message of the run can still be sent, by the read model. */
  completed: boolean;
}

export interface PauseCommand extends CommandStamp {
  name: 'pause';
  reason: string | null;
  completed: boolean;
}

export interface ResumeCommand extends CommandStamp {
  name: 'resume';
  reason: string | null;
  completed: boolean;
  /** The run was stopped by itself because its messages could only fail. */
  runHeld: boolean;
}

export interface CancelCommand extends CommandStamp {
  name: 'cancel';
  reason: string | null;
  completed: boolean;
}

export type ScheduleCommand = RequestCommand | ReviseCommand | PauseCommand | ResumeCommand | CancelCommand;

export type Decision =
  | { outcome: 'happened'; event: ScheduleEvent }
  /** Nothing to do, and that is fine. */
  | { outcome: 'nothing'; why: 'no_change' | 'already_paused' | 'not_paused' | 'already_cancelled' | 'already_completed' }
  | { outcome: 'refused'; reason: 'schedule_exists' | 'schedule_not_found' | 'schedule_ended' }
  | { outcome: 'refused'; reason: 'version_mismatch'; currentVersion: number };

const nothing = (why: Extract<Decision, { outcome: 'nothing' }>['why']): Decision => ({ outcome: 'nothing', why });
const ended: Decision = { outcome: 'refused', reason: 'schedule_ended' };

export function decide(command: ScheduleCommand, state: ScheduleState): Decision {
  const { atMs, by } = command;
  if (command.name === 'request') {
    if (state.status !== 'none') return { outcome: 'refused', reason: 'schedule_exists' };
    const { scheduleId, tenantId, mode, externalId, runId, definition } = command;
    const data = { scheduleId, tenantId, mode, externalId, runId, definition };
    return { outcome: 'happened', event: { name: 'requested', atMs, by, data } };
  }
  if (state.status === 'none') return { outcome: 'refused', reason: 'schedule_not_found' };
  switch (command.name) {
    case 'revise':
      return decideRevision(command, state);
    case 'pause':
      if (state.status === 'cancelled' || command.completed) return ended;
      if (state.paused) return nothing('already_paused');
      return { outcome: 'happened', event: { name: 'paused', atMs, by, data: { reason: command.reason } } };
    case 'resume':
      if (state.status === 'cancelled' || command.completed) return ended;
      if (!state.paused && !command.runHeld) return nothing('not_paused');
      return { outcome: 'happened', event: { name: 'resumed', atMs, by, data: { reason: command.reason } } };
    case 'cancel':
      if (state.status === 'cancelled') return nothing('already_cancelled');
      if (command.completed) return nothing('already_completed');
      return { outcome: 'happened', event: { name: 'cancelled', atMs, by, data: { reason: command.reason } } };
    default:
      return command satisfies never;
  }
}

function decideRevision(command: ReviseCommand, state: ExistingSchedule): Decision {
  // The precondition comes first: who looks at an old version must learn that before anything else.
  if (command.expectedVersion !== 'any' && command.expectedVersion !== state.version) {
    return { outcome: 'refused', reason: 'version_mismatch', currentVersion: state.version };
  }
  if (state.status === 'cancelled' || command.completed) return ended;
  const changed = changedMembers(state.definition, command.definition);
  if (changed.length === 0) return nothing('no_change');
  return {
    outcome: 'happened',
    event: {
      name: 'revised',
      atMs: command.atMs,
      by: command.by,
      data: {
        definition: command.definition,
        changed,
        raisesRevision: changed.some((member) => !ONLY_DESCRIBES.has(member)),
        audienceChanged: state.definition.audience.id !== command.definition.audience.id,
      },
    },
  };
}

/** Members that no planner and no gate looks at; every other change concerns the messages that are not released yet. */
const ONLY_DESCRIBES = new Set(['name', 'labels']);

const MEMBERS = ['category', 'content', 'audience', 'slot', 'priority', 'onUncertain', 'retryDelaysMs', 'labels'] as const;

function changedMembers(before: ScheduleDefinition, after: ScheduleDefinition): string[] {
  const changed: string[] = MEMBERS.filter((member) => !isSame(before[member], after[member]));
  if (before.asked.name !== after.asked.name) changed.push('name');
  return changed;
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.entries(a);
  const right = b as Record<string, unknown>;
  return (
    left.length === Object.keys(b).length && left.every(([key, value]) => Object.hasOwn(right, key) && isSame(value, right[key]))
  );
}
