import type { AnyEvent, Events } from '#contracts/events';
import { factsOfOwn, type MessageFacts, type OwnFact } from './message-facts';

export interface DeliveryFact {
  occurrenceId: Buffer;
  scheduleId: Buffer;
  tenantId: Buffer;
  facts: MessageFacts;
}

type MessageEventName =
  | 'MessageSubmitted'
  | 'MessageRefused'
  | 'MessageHeld'
  | 'SendRetryPlanned'
  | 'MessageFailed'
  | 'OutcomeUncertain'
  | 'OutcomeUnconfirmed';

/** What one event of a sender says of its message; null for events that are not about a single message. */
export function readDelivery({ name, event }: AnyEvent): DeliveryFact | null {
  switch (name) {
    case 'MessageHeld':
      return about(event, {
        ...base(event),
        kind: 'held',
        reason: event.reason,
        since: event.since,
        until: event.until,
        givesUpAt: event.givesUpAt,
      });
    case 'SendRetryPlanned':
      return about(event, {
        ...base(event),
        kind: 'retry',
        attempt: event.attempt,
        until: event.nextAttemptAt,
        error: { code: event.code, providerCode: event.providerCode, text: event.text },
      });
    case 'MessageSubmitted': {
      const { step, attempt, submittedAt, calledAt, waits } = event;
      const own: OwnFact = { ...base(event), kind: 'submitted', attempt };
      return about(
        event,
        own,
        { step, attempt, at: submittedAt, calledAt, waits: waits.map(({ reason, ms }) => ({ reason, ms })) },
        event.providerMessageId,
      );
    }
    case 'MessageFailed':
      return about(event, {
        ...base(event),
        kind: 'failed',
        attempt: event.attempt,
        reachedProvider: event.reachedProvider,
        error: { code: event.code, providerCode: event.providerCode, text: event.text },
      });
    case 'OutcomeUncertain':
      return about(event, {
        ...base(event),
        kind: 'uncertain',
        attempt: event.attempt,
        reason: event.reason,
        since: event.since,
        until: event.until,
      });
    case 'OutcomeUnconfirmed':
      return about(event, { ...base(event), kind: 'unconfirmed', attempt: event.attempt });
    case 'MessageRefused':
      return about(event, {
        ...base(event),
        kind: 'refused',
        status: event.status,
        reason: event.reason,
        afterUncertain: event.afterUncertain,
      });
    default:
      return null;
  }
}

function base({ step, at, position, revision, dueAt }: Events[MessageEventName]) {
  return { step, at, position, revision, dueAt };
}

function about(
  { occurrenceId, scheduleId, tenantId }: Events[MessageEventName],
  ...parts: Parameters<typeof factsOfOwn>
): DeliveryFact {
  return { occurrenceId, scheduleId, tenantId, facts: factsOfOwn(...parts) };
}
