import { formatId, occurrenceId, uuidBytes } from '#contracts/ids';
import type { RecipientRequest } from '../request/schedule-request';
import type { ScheduleDefinition } from './definition';
import type { RecipientResult } from './inline-recipients';
import type { ExistingSchedule, Mark } from './schedule-state';

/** What others know of a schedule now, beside its own stream. */
export interface LiveFacts {
  completed: boolean;
  waitingFor: { reason: string; sinceMs: number | null; untilMs: number | null } | null;
}

export const NOTHING_LIVE: LiveFacts = { completed: false, waitingFor: null };

export type ScheduleStatus = 'active' | 'completed' | 'cancelled';

export function scheduleStatus(state: ExistingSchedule, live: LiveFacts): ScheduleStatus {
  if (state.status === 'cancelled') return 'cancelled';
  return live.completed ? 'completed' : 'active';
}

/** A schedule as customers see it: their own words unchanged, and what became of them. */
export function scheduleView(state: ExistingSchedule, live: LiveFacts): Record<string, unknown> {
  const { definition } = state;
  const { slot, audience } = definition;
  return {
    ...definition.asked,
    id: formatId('sch', uuidBytes(state.scheduleId)),
    status: scheduleStatus(state, live),
    paused: markView(state.paused),
    cancelled: markView(state.cancelled),
    waitingFor: live.waitingFor
      ? { reason: live.waitingFor.reason, since: isoOrNull(live.waitingFor.sinceMs), until: isoOrNull(live.waitingFor.untilMs) }
      : null,
    version: state.version,
    revision: state.revision,
    mode: state.mode,
    createdAt: iso(state.createdAtMs),
    category: definition.category,
    priority: definition.priority,
    next: [
      {
        slot: slot.slot,
        runId: formatId('run', Buffer.from(state.runId, 'hex')),
        timeZone: slot.timeZone,
        local: slot.resolvedLocal,
        at: iso(slot.dueAtMs),
        validUntil: isoOrNull(slot.validUntilMs),
        rule: slot.rule,
        tzdb: slot.tzdb,
        recipients: audience.accepted,
        note: slot.note,
      },
    ],
    audience: {
      id: formatId('aud', uuidBytes(audience.id)),
      accepted: audience.accepted,
      rejected: audience.rejected,
      duplicates: audience.duplicates,
    },
    forecast: forecast(definition, state.createdAtMs),
    warnings: definition.warnings,
  };
}

/** When the first and the last message leave if nothing else uses the number and nothing fails. */
function forecast(definition: ScheduleDefinition, createdAtMs: number): Record<string, unknown> {
  const { ratePerSecond } = definition.number;
  const firstMs = Math.max(definition.slot.dueAtMs, createdAtMs);
  const lastMs = firstMs + Math.ceil(((definition.audience.accepted - 1) * 1000) / ratePerSecond);
  return { firstSendAt: iso(firstMs), lastSendAt: iso(lastMs), ratePerSecond };
}

/** In the order sent, so that a caller can match by index. */
export function recipientViews(
  results: readonly RecipientResult[],
  recipients: readonly RecipientRequest[],
  runId: string,
): Array<Record<string, unknown>> {
  const run = Buffer.from(runId, 'hex');
  return results.map((result) => {
    const { index } = result;
    const named = { index, ref: recipients[index]?.ref ?? null, result: result.result };
    switch (result.result) {
      case 'accepted':
        return { ...named, messageId: formatId('msg', occurrenceId(run, result.recipientHash)) };
      case 'duplicate':
        return { ...named, duplicateOf: result.duplicateOf };
      case 'rejected': {
        const { code, detail, member } = result.error;
        return { ...named, error: { code, pointer: `#/recipients/${index}/${member}`, detail } };
      }
      default:
        return result satisfies never;
    }
  });
}

function markView(mark: Mark | null): Record<string, unknown> | null {
  return mark ? { at: iso(mark.atMs), by: mark.by, reason: mark.reason } : null;
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}
