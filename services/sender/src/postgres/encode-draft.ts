import type { Codec } from '#contracts/codec';
import { draftToEvent, type Draft } from '#contracts/draft';
import { derivedEventId } from '#contracts/ids';

/**
 * The bytes of an event that a function of the database wrote as a draft. Its id is derived from what makes the fact one fact,
 * so a row that the relay sends twice is recognised: per message a step tells each event apart, but not holds, which follow one
 * another without a step.
 */
export function draftEncoder(codec: Codec): (topic: string, draft: unknown) => { value: Buffer } {
  return (_topic, given) => {
    const draft = given as Draft;
    const { occurrenceId, runId, step, reason, since } = draft.event;
    const eventId =
      draft.name === 'MessageHeld' || draft.name === 'RunHeld'
        ? derivedEventId(draft.name, String(occurrenceId ?? runId), String(step), String(reason), String(since))
        : derivedEventId(draft.name, String(occurrenceId), String(step));
    const { name, event } = draftToEvent({ name: draft.name, event: { ...draft.event, eventId } });
    return { value: codec.encode(name, event) };
  };
}
