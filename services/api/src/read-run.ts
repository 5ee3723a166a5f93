import { openChunk } from '#contracts/audience-chunk';
import { CHUNK_SIZE, RECIPIENT_HASH_BYTES, occurrenceId } from '#contracts/ids';
import type { ApiParts } from './api-parts';
import type { Call, Outcome } from './call';
import { scheduleFacts } from './find-message';
import { liveFacts, scheduleByName, scheduleOfRun } from './find-schedule';
import { makeCursor, readCursor } from './list-schedules';
import { mergeMessage } from './messages/merge-message';
import { messageView } from './messages/message-view';
import { runView } from './messages/run-view';
import { readChunk, readMessageFacts, readRunFacts } from './postgres/messages';
import type { FoundSchedule } from './postgres/schedules';
import { refuse } from './problem/problem-table';

export async function readRun(parts: ApiParts, call: Call<{ id: string }>): Promise<Outcome> {
  const found = await scheduleOfRun(parts, call.caller.tenantId, call.params.id);
  return found ? { status: 200, body: await viewOfRun(parts, call, found) } : refuse('run_not_found');
}

/** A one-off has exactly one run. */
export async function listRuns(parts: ApiParts, call: Call<{ id: string }>): Promise<Outcome> {
  const found = await scheduleByName(parts, call.caller.tenantId, call.params.id);
  if (!found) return refuse('schedule_not_found');
  return { status: 200, body: { data: [await viewOfRun(parts, call, found)], nextCursor: null } };
}

async function viewOfRun(parts: ApiParts, call: Call, found: FoundSchedule): Promise<Record<string, unknown>> {
  const facts = await readRunFacts(parts.database, Buffer.from(found.state.runId, 'hex'), call.nowMs);
  return runView(found.state, facts, liveFacts(found));
}

export interface MessageFilter {
  limit?: number;
  cursor?: string;
  status?: string[];
}

/** A page of a filtered list looks at this many chunks at most; it may then be short, with a cursor that goes on from there. */
const MOST_CHUNKS_A_PAGE = 20;

/** In the order of the audience. Recipients that nobody has released yet are in it like all others. */
export async function listRunMessages(parts: ApiParts, call: Call<{ id: string }, MessageFilter>): Promise<Outcome> {
  const found = await scheduleOfRun(parts, call.caller.tenantId, call.params.id);
  if (!found) return refuse('run_not_found');
  const { limit = 50, cursor, status } = call.query;
  const filters = { run: found.state.runId, audience: found.state.definition.audience.id, status };
  const start = cursor === undefined ? '0' : readCursor(cursor, filters);
  if (start === undefined || !/^\d{1,9}$/.test(start)) {
    return refuse('cursor_mismatch', {
      errors: [{ parameter: 'cursor', code: 'cursor_mismatch', detail: 'it was made with other filters' }],
    });
  }
  const wanted = status ? new Set(status) : null;
  const total = found.state.definition.audience.accepted;
  const data: unknown[] = [];
  let position = Number(start);
  for (let chunks = 0; chunks < MOST_CHUNKS_A_PAGE && position < total && data.length < limit; chunks++) {
    const messages = await messagesFrom(parts, call, found, position, wanted ? CHUNK_SIZE : limit - data.length);
    for (const message of messages) {
      position = message.position + 1;
      if (!wanted || wanted.has(message.status)) data.push(message.view);
      if (data.length === limit) break;
    }
    if (messages.length === 0) throw new Error(`position ${position} of run ${found.state.runId} is in no chunk`);
  }
  return { status: 200, body: { data, nextCursor: position < total ? makeCursor(String(position), filters) : null } };
}

async function messagesFrom(parts: ApiParts, call: Call, found: FoundSchedule, position: number, count: number) {
  const { state } = found;
  const runId = Buffer.from(state.runId, 'hex');
  const chunk = await readChunk(parts.database, state.definition.audience.id, Math.floor(position / CHUNK_SIZE));
  if (!chunk) return [];
  const first = position % CHUNK_SIZE;
  const indexes = Array.from({ length: Math.max(0, Math.min(chunk.count - first, count)) }, (_, offset) => first + offset);
  const positions = indexes.map((index) => chunk.chunk * CHUNK_SIZE + index);
  const ids = indexes.map((index) =>
    occurrenceId(runId, chunk.hashes.subarray(index * RECIPIENT_HASH_BYTES, (index + 1) * RECIPIENT_HASH_BYTES)),
  );
  const recipients = openChunk(chunk.body);
  const facts = await readMessageFacts(parts.database, runId, ids, positions);
  const shows = call.caller.scopes.has('recipients:read');
  return facts.map((one, offset) => {
    const merged = mergeMessage(one, scheduleFacts(found, call.nowMs));
    const recipient = recipients[indexes[offset]!] ?? null;
    return {
      position: positions[offset]!,
      status: merged.status,
      view: messageView(ids[offset]!, state, one, merged, recipient, shows),
    };
  });
}
