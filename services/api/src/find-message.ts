import { openChunk, type Recipient } from '#contracts/audience-chunk';
import { CHUNK_SIZE, parseId, recipientHashOf, runOf } from '#contracts/ids';
import type { ApiParts } from './api-parts';
import type { Call } from './call';
import { mergeMessage, type MergedMessage } from './messages/merge-message';
import type { MessageFacts, ScheduleFacts } from './messages/message-facts';
import { messageView } from './messages/message-view';
import { locateRecipient, readMessageFacts } from './postgres/messages';
import { findSchedule, type FoundSchedule } from './postgres/schedules';

/** Receipts that come later than this after a run's end are corrections. */
const EVIDENCE_WINDOW_MS = 900_000;

export interface FoundMessage {
  occurrenceId: Buffer;
  schedule: FoundSchedule;
  position: number;
  recipient: Recipient;
  facts: MessageFacts;
  merged: MergedMessage;
}

/**
 * A message by its id: the id holds its run, the run has a schedule, and the recipient's hash is in one of its chunks. So it is
 * found whether or not anybody has done anything about it yet.
 */
export async function findMessage(parts: ApiParts, call: Call, id: string): Promise<FoundMessage | null> {
  const occurrenceId = parseId('msg', id);
  if (!occurrenceId) return null;
  const runId = runOf(occurrenceId);
  const schedule = await findSchedule(parts.database, call.caller.tenantId, { runId });
  if (!schedule) return null;
  const { scheduleId, definition } = schedule.state;
  const located = await locateRecipient(parts.database, scheduleId, definition.audience.id, recipientHashOf(occurrenceId));
  if (!located) return null;
  const recipient = openChunk(located.body)[located.index];
  if (!recipient) throw new Error(`chunk ${located.chunk} of audience ${located.audienceId} has fewer recipients than hashes`);
  const position = located.chunk * CHUNK_SIZE + located.index;
  const isCurrent = located.audienceId === definition.audience.id;
  const [facts] = await readMessageFacts(parts.database, runId, [occurrenceId], [position]);
  if (!facts) throw new Error('no row for the message that was asked for');
  const merged = mergeMessage(isCurrent ? facts : { ...facts, range: null }, scheduleFacts(schedule, call.nowMs));
  return {
    occurrenceId,
    schedule,
    position,
    recipient,
    facts,
    // A revision with another audience: this recipient is no longer asked for.
    merged:
      isCurrent || merged.status !== 'scheduled' ? merged : { ...merged, status: 'cancelled', final: true, reason: 'revised' },
  };
}

export function scheduleFacts(schedule: FoundSchedule, nowMs: number): ScheduleFacts {
  const { state, completedAtMs } = schedule;
  return {
    cancelled: state.status === 'cancelled',
    pausedSinceMs: state.paused?.atMs ?? null,
    dueAtMs: state.definition.slot.dueAtMs,
    nowMs,
    evidenceEnded: completedAtMs !== null && nowMs > completedAtMs + EVIDENCE_WINDOW_MS,
  };
}

export function viewOf(call: Call, message: FoundMessage): Record<string, unknown> {
  return messageView(
    message.occurrenceId,
    message.schedule.state,
    message.facts,
    message.merged,
    message.recipient,
    call.caller.scopes.has('recipients:read'),
  );
}
