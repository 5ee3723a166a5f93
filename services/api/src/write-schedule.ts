import { cloudEventHeaders } from '#contracts/cloud-events';
import type { Codec } from '#contracts/codec';
import { formatId, uuidBytes } from '#contracts/ids';
import { sqlState } from '#runtime/postgres/failures';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Repeated } from './call';
import { answerRecord } from './call';
import { repeatedBy } from './postgres/answers';
import { append, findExisting, type InlineAudience, type OutboxRow } from './postgres/schedules';
import { refuse, type Refusal } from './problem/problem-table';
import { gateChange } from './schedule/gate-change';
import { publicEvent } from './schedule/public-event';
import type { ScheduleEvent } from './schedule/schedule-events';
import type { ExistingSchedule } from './schedule/schedule-state';

export interface ScheduleWrite {
  event: ScheduleEvent;
  /** After the event. */
  state: ExistingSchedule;
  /** What the caller will be told; null where that is known only after the write. */
  answer: Answer | null;
  duplicateHash?: Buffer | null;
  audience?: InlineAudience | null;
}

export type WriteRefusal = Refusal | Repeated | { conflict: 'version' };

/** The one write of a command: stream, snapshot, gate and outbox together, or nothing. Null: written. */
export async function writeSchedule(parts: ApiParts, call: Call, write: ScheduleWrite): Promise<WriteRefusal | null> {
  const { event, state } = write;
  try {
    await append(parts.database, {
      state,
      event,
      gate: gateChange(event, state, parts.holdGiveUpMs),
      outbox: outboxRow(parts.codec, parts.schedulesTopic, event, state, call),
      correlationId: call.correlationId,
      traceparent: call.traceparent,
      duplicateHash: write.duplicateHash,
      audience: write.audience ?? null,
      answer: write.answer ? answerRecord(call, write.answer) : null,
      requestHash: call.idempotency?.requestHash ?? null,
    });
  } catch (error) {
    const refusal = await refusalOf(parts, error, write);
    if (refusal) return refusal;
    throw error;
  }
  parts.wakeRelay();
  return null;
}

async function refusalOf(parts: ApiParts, error: unknown, write: ScheduleWrite): Promise<WriteRefusal | null> {
  const { state } = write;
  const repeated = repeatedBy(error);
  if (repeated) return repeated;
  switch (sqlState(error)) {
    case 'PA412':
      return { conflict: 'version' };
    case 'PA404':
      return refuse('schedule_not_found');
    case 'PT409':
      return refuse('audience_in_use');
    // The gate closed for good between reading and writing.
    case 'PT404':
      return { conflict: 'version' };
    case '23505':
      break;
    default:
      return null;
  }
  const constraint = (error as { constraint?: string }).constraint;
  if (constraint === 'schedule_external_id_key') {
    return refuse('external_id_taken', {
      members: { existing: await existing(parts, state.tenantId, { externalId: state.externalId! }) },
    });
  }
  if (constraint === 'schedule_duplicate_key' && write.duplicateHash) {
    return refuse('duplicate_schedule', {
      members: { existing: await existing(parts, state.tenantId, { duplicateHash: write.duplicateHash }) },
    });
  }
  return null;
}

async function existing(parts: ApiParts, tenantId: string, by: Parameters<typeof findExisting>[2]): Promise<string | null> {
  const id = await findExisting(parts.database, tenantId, by);
  return id ? formatId('sch', uuidBytes(id)) : null;
}

function outboxRow(codec: Codec, topic: string, event: ScheduleEvent, state: ExistingSchedule, call: Call): OutboxRow {
  const told = publicEvent(event, state, { correlationId: call.correlationId, traceparent: call.traceparent });
  const key = told.event.scheduleId;
  return {
    topic,
    key,
    value: codec.encode(told.name, told.event as never),
    headers: cloudEventHeaders({
      id: told.event.eventId,
      type: told.type,
      source: `/tenants/${told.event.tenantId}`,
      subject: key,
      timeMs: event.atMs,
      dataSchema: `/schemas/${told.name}`,
      partitionKey: key,
      sequence: state.version,
      traceparent: call.traceparent,
    }),
  };
}
