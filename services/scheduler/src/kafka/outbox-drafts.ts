import type { Codec } from '#contracts/codec';
import { draftToEvent, type Draft } from '#contracts/draft';
import type { AnyEvent, EventName, Events } from '#contracts/events';
import { derivedEventId } from '#contracts/ids';

/** An event as it lies in the outbox: bytes as hex, so that the database's own functions can write the same. */
export function toDraft<N extends EventName>(name: N, event: Events[N]): Draft {
  const fields = Object.entries(event).map(([field, value]) => [field, Buffer.isBuffer(value) ? value.toString('hex') : value]);
  return { name, event: Object.fromEntries(fields) as Record<string, unknown> };
}

/** Events that the database wrote have no id yet: it follows from what they say, so the same fact always gets the same one. */
export function encodeDraft(codec: Codec, draft: Draft): Buffer {
  const written = draftToEvent(draft);
  const named = identified(written);
  return codec.encode(named.name, named.event);
}

function identified(written: AnyEvent): AnyEvent {
  switch (written.name) {
    case 'RunReleased': {
      const { runId, revision } = written.event;
      return { name: written.name, event: { ...written.event, eventId: derivedEventId(written.name, runId, revision) } };
    }
    case 'RecipientsRefused': {
      const { runId, revision, fromPosition, untilPosition, status, reason } = written.event;
      const eventId = derivedEventId(written.name, runId, revision, fromPosition, untilPosition, status, reason);
      return { name: written.name, event: { ...written.event, eventId } };
    }
    default:
      return written;
  }
}
