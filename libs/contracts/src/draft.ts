import type { AnyEvent, EventName, Events } from './events';
import { CodecError } from './codec';

/** An event as a database function writes it: bytes as lower-case hex, everything else as in the event. */
export interface Draft {
  name: string;
  event: Record<string, unknown>;
}

const BYTE_FIELDS = ['occurrenceId', 'scheduleId', 'tenantId', 'numberId', 'runId'] as const;

/** Events of internal topics only: their ids are bytes. */
export function draftToEvent(draft: Draft): AnyEvent {
  const event: Record<string, unknown> = { ...draft.event };
  for (const field of BYTE_FIELDS) {
    const value = event[field];
    if (value === undefined) continue;
    if (typeof value !== 'string' || !/^([0-9a-f]{2})+$/.test(value)) {
      throw new CodecError('invalid_event', `${draft.name}.${field} of a draft is not hex`);
    }
    event[field] = Buffer.from(value, 'hex');
  }
  return { name: draft.name as EventName, event: event as unknown as Events[EventName] } as AnyEvent;
}
