import { againAfterConflict } from './again-after-conflict';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Outcome } from './call';
import { rememberAnswer } from './postgres/answers';
import { settle } from './postgres/receipts-of-commands';
import type { FoundSchedule } from './postgres/schedules';
import { refuse } from './problem/problem-table';
import { commandReceipt } from './schedule/command-receipt';
import { decide, type Decision } from './schedule/decide';
import { evolve } from './schedule/evolve';
import type { ExistingSchedule } from './schedule/schedule-state';
import { scheduleAnswer } from './find-schedule';
import { writeSchedule } from './write-schedule';

export type ChangeName = 'pause' | 'resume' | 'cancel';

/** Finds the schedule again after each conflict. */
export type Find = () => Promise<FoundSchedule | null>;

export async function changeSchedule(
  parts: ApiParts,
  call: Call<unknown, unknown, { reason?: string }>,
  name: ChangeName,
  find: Find,
  missing: 'schedule_not_found' | 'run_not_found',
): Promise<Outcome> {
  const once = async () => {
    const found = await find();
    return found ? changeOnce(parts, call, name, found) : refuse(missing);
  };
  const outcome = await againAfterConflict(once, (answer) => 'conflict' in answer);
  return 'conflict' in outcome ? refuse('unavailable', { headers: { 'retry-after': '1' } }) : outcome;
}

async function changeOnce(
  parts: ApiParts,
  call: Call<unknown, unknown, { reason?: string }>,
  name: ChangeName,
  found: FoundSchedule,
): Promise<Outcome | { conflict: 'version' }> {
  const stamp = {
    atMs: call.nowMs,
    by: call.caller.actor,
    reason: call.body.reason ?? null,
    completed: found.completedAtMs !== null,
  };
  const decision = decide(
    name === 'resume' ? { name, ...stamp, runHeld: found.runHoldReason !== null } : { name, ...stamp },
    found.state,
  );
  if (decision.outcome === 'refused') return refuse('schedule_ended');
  const state = await happened(parts, call, name, decision, found);
  if (!('scheduleId' in state)) return state;
  const answer = await afterwards(parts, name, { ...found, state }, call.nowMs);
  const keptWithTheWrite = name === 'resume' && decision.outcome === 'happened';
  return keptWithTheWrite ? answer : rememberAnswer(parts.database, call, answer);
}

async function happened(parts: ApiParts, call: Call, name: ChangeName, decision: Decision, found: FoundSchedule) {
  if (decision.outcome !== 'happened') return found.state;
  const state = evolve(found.state, decision.event);
  // Only a resume's answer is known before the write; receipts are kept by their own function.
  const answer = name === 'resume' ? resumed(found, state) : null;
  const refused = await writeSchedule(parts, call, { event: decision.event, state, answer });
  return refused ?? state;
}

async function afterwards(parts: ApiParts, name: ChangeName, found: FoundSchedule, nowMs: number): Promise<Answer> {
  const { state } = found;
  switch (name) {
    case 'resume':
      return resumed(found, state);
    case 'pause':
      return receipt(parts, 'pause', 'pause', state, state.pausedVersion ?? state.version, state.paused?.atMs ?? nowMs);
    case 'cancel':
      // A completed schedule was not cancelled: nothing can be prevented, and its counts are simply read.
      return state.status === 'cancelled'
        ? receipt(parts, 'cancel', 'cancel', state, state.cancelledVersion ?? state.version, state.cancelled?.atMs ?? nowMs)
        : receipt(parts, 'cancel', 'pause', state, state.version, nowMs);
    default:
      return name satisfies never;
  }
}

function resumed(found: FoundSchedule, state: ExistingSchedule): Answer {
  return scheduleAnswer({ ...found, state, runHoldReason: null });
}

async function receipt(
  parts: ApiParts,
  kind: 'cancel' | 'pause',
  counting: 'cancel' | 'pause',
  state: ExistingSchedule,
  version: number,
  atMs: number,
): Promise<Answer> {
  const counts = await settle(parts.database, counting, state, version, atMs);
  return { status: 200, headers: { etag: `"${state.version}"` }, body: commandReceipt(kind, state.scheduleId, counts) };
}
