import { parseId, uuidText } from '#contracts/ids';
import type { ApiParts } from './api-parts';
import type { Answer, Call } from './call';
import { findSchedule, type FoundSchedule, type ScheduleKey } from './postgres/schedules';
import { refuse, type Refusal } from './problem/problem-table';
import { scheduleView, type LiveFacts } from './schedule/schedule-view';

const EXTERNAL = /^ext:/i;

/** A schedule by its id or as `ext:<externalId>`; null for anything that names none. */
export async function scheduleByName(parts: ApiParts, tenantId: string, name: string): Promise<FoundSchedule | null> {
  const key = scheduleKey(name);
  return key ? findSchedule(parts.database, tenantId, key) : null;
}

/** The schedule of a run: a one-off has exactly one. */
export async function scheduleOfRun(parts: ApiParts, tenantId: string, run: string): Promise<FoundSchedule | null> {
  const runId = parseId('run', run);
  return runId ? findSchedule(parts.database, tenantId, { runId }) : null;
}

function scheduleKey(name: string): ScheduleKey | null {
  if (EXTERNAL.test(name)) return { externalId: name.slice('ext:'.length) };
  const id = parseId('sch', name);
  return id ? { id: uuidText(id) } : null;
}

export function liveFacts(found: FoundSchedule): LiveFacts {
  const completed = found.completedAtMs !== null;
  if (completed || found.state.status === 'cancelled') return { completed, waitingFor: null };
  if (found.runHoldReason !== null)
    return { completed, waitingFor: { reason: found.runHoldReason, sinceMs: null, untilMs: null } };
  return { completed, waitingFor: found.numberHold };
}

export async function readSchedule(parts: ApiParts, call: Call<{ id: string }>): Promise<Answer | Refusal> {
  const found = await scheduleByName(parts, call.caller.tenantId, call.params.id);
  return found ? scheduleAnswer(found) : refuse('schedule_not_found');
}

export function scheduleAnswer(found: FoundSchedule): Answer {
  return { status: 200, headers: { etag: `"${found.state.version}"` }, body: scheduleView(found.state, liveFacts(found)) };
}
