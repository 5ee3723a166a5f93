import { join } from 'node:path';
import { retrying } from '#runtime/postgres/retrying';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Outcome } from './call';
import { findMessage, viewOf, type FoundMessage } from './find-message';
import { timeline, type TimelineRecords } from './messages/timeline';
import { rememberAnswer } from './postgres/answers';
import { refuse } from './problem/problem-table';

const TIMELINE = sqlFile(join(__dirname, 'postgres'), 'read-timeline.sql');
const CANCEL = sqlFile(join(__dirname, 'postgres'), 'cancel-occurrence.sql');

type MessageCall = Call<{ id: string }>;

export async function readMessage(parts: ApiParts, call: MessageCall): Promise<Outcome> {
  const message = await findMessage(parts, call, call.params.id);
  return message ? { status: 200, body: viewOf(call, message) } : refuse('message_not_found');
}

export async function readTimeline(parts: ApiParts, call: MessageCall): Promise<Outcome> {
  const message = await findMessage(parts, call, call.params.id);
  if (!message) return refuse('message_not_found');
  const { state } = message.schedule;
  const [row] = await parts.database.rows<{ [K in keyof TimelineRecords]: TimelineRecords[K] | null }>(TIMELINE, [
    message.occurrenceId,
    state.scheduleId,
  ]);
  const records = { events: row?.events ?? [], attempts: row?.attempts ?? [], evidence: row?.evidence ?? [] };
  return { status: 200, body: { data: timeline(state, records, message.facts, message.merged, call.nowMs) } };
}

/** One message by name. Under the gate's lock: it can be cancelled as long as no attempt is at the provider or may have been. */
export async function cancelMessage(parts: ApiParts, call: MessageCall): Promise<Outcome> {
  const message = await findMessage(parts, call, call.params.id);
  if (!message) return refuse('message_not_found');
  if (message.merged.status === 'cancelled') return cancelled(parts, call, message);
  const { state } = message.schedule;
  const values = [
    state.scheduleId,
    Buffer.from(state.runId, 'hex'),
    message.occurrenceId,
    message.position,
    new Date(state.definition.slot.dueAtMs),
    state.revision,
  ];
  const [row] = await retrying(() => parts.database.rows<{ prevented: boolean; state: string }>(CANCEL, values), {
    states: ['55P03'],
    attempts: 4,
  });
  parts.wakeRelay();
  const now = (await findMessage(parts, call, call.params.id)) ?? message;
  if (row?.prevented || row?.state === 'cancelled') return cancelled(parts, call, now);
  return refuse('too_late', { members: { messageStatus: now.merged.status, message: viewOf(call, now) } });
}

function cancelled(parts: ApiParts, call: MessageCall, message: FoundMessage): Promise<Outcome> {
  const answer: Answer = { status: 200, body: viewOf(call, message) };
  return rememberAnswer(parts.database, call, answer);
}
