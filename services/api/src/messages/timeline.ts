import { iso, isoOrNull } from '../schedule/schedule-view';
import type { ExistingSchedule } from '../schedule/schedule-state';
import type { MergedMessage } from './merge-message';
import type { MessageFacts } from './message-facts';

export interface StreamEntry {
  version: number;
  name: string;
  data: Record<string, unknown>;
  atMs: number;
  actor: string;
  traceparent: string | null;
}

export interface AttemptEntry {
  attempt: number;
  begunAtMs: number;
  calledAtMs: number | null;
  endedAtMs: number | null;
  outcome: string | null;
  errorCode: string | null;
  providerCode: string | null;
  text: string | null;
  waits: Array<{ reason: string; ms: number }> | null;
  traceId: string | null;
}

export interface EvidenceEntry {
  attempt: number;
  kind: string;
  providerAtMs: number;
  recordedAtMs: number;
  code: string | null;
  providerCode: string | null;
}

export interface TimelineRecords {
  events: StreamEntry[];
  attempts: AttemptEntry[];
  evidence: EvidenceEntry[];
}

export interface TimelineItem {
  /** By our clocks: of what a provider says, when we heard it. */
  at: string;
  /** Of what a provider says, when it was, as the provider told it: whole seconds of a clock that is not ours. */
  providerAt: string | null;
  what: string;
  by: string;
  detail: Record<string, unknown>;
  traceId: string | null;
}

/**
 * What happened to one message, from what was asked to the last evidence, in the order in which we saw it. Ordered by what providers
 * tell, evidence would stand before the call that it is about: whole seconds are up to a second early. Items of one instant keep the
 * order of their causes.
 */
export function timeline(
  schedule: ExistingSchedule,
  records: TimelineRecords,
  facts: MessageFacts,
  merged: MergedMessage,
  nowMs: number,
): TimelineItem[] {
  const items: Array<{ atMs: number; item: Omit<TimelineItem, 'at'> }> = [];
  const add = (
    atMs: number,
    what: string,
    by: string,
    detail: Record<string, unknown> = {},
    traceId: string | null = null,
    providerAt: string | null = null,
  ) => items.push({ atMs, item: { providerAt, what, by, detail: withoutNothing(detail), traceId } });
  const { slot, number } = schedule.definition;

  for (const event of records.events) {
    add(
      event.atMs,
      `schedule_${event.name}`,
      event.actor,
      { version: event.version, ...event.data },
      traceIdOf(event.traceparent),
    );
  }
  const asked = { local: slot.local, timeZone: slot.timeZone, rule: slot.rule, tzdb: slot.tzdb, note: slot.note };
  add(records.events[0]?.atMs ?? schedule.createdAtMs, 'time_resolved', 'api', {
    ...asked,
    at: iso(slot.dueAtMs),
    resolvedLocal: slot.resolvedLocal,
  });
  if (slot.dueAtMs <= nowMs) add(slot.dueAtMs, 'due', 'scheduler', { validUntil: isoOrNull(slot.validUntilMs) });
  if (facts.waiting) add(facts.waiting.sinceMs, 'waiting', 'sender', waitingDetail(facts.waiting));

  const provider = number.providerIdentity.split(':', 1)[0]!;
  for (const attempt of records.attempts) {
    const { traceId } = attempt;
    add(attempt.begunAtMs, 'attempt_begun', 'sender', { attempt: attempt.attempt }, traceId);
    if (attempt.calledAtMs !== null) {
      add(attempt.calledAtMs, 'provider_called', 'sender', { attempt: attempt.attempt, provider, waits: attempt.waits }, traceId);
    }
    if (attempt.endedAtMs !== null && attempt.outcome !== null) {
      const { outcome, errorCode, providerCode, text } = attempt;
      add(
        attempt.endedAtMs,
        `attempt_${outcome}`,
        'sender',
        { attempt: attempt.attempt, errorCode, providerCode, text },
        traceId,
      );
    }
  }
  for (const { attempt, kind, code, providerCode, providerAtMs, recordedAtMs } of [...records.evidence].sort(compareEvidence)) {
    const detail = { attempt, code, providerCode };
    add(recordedAtMs, `provider_says_${kind}`, provider, detail, null, asTold(providerAtMs));
  }
  const ended = endOf(facts, merged);
  if (ended) add(ended.atMs, merged.status, ended.by, { reason: merged.reason });

  return items
    .map((entry, order) => ({ ...entry, order }))
    .sort((a, b) => a.atMs - b.atMs || a.order - b.order)
    .map(({ atMs, item }) => ({ at: iso(atMs), ...item }));
}

/** As a message goes its way; several come in one webhook, and in one second. */
const KINDS = ['held', 'sent', 'delivered', 'read', 'played', 'failed'];

function compareEvidence(a: EvidenceEntry, b: EvidenceEntry): number {
  return a.recordedAtMs - b.recordedAtMs || a.providerAtMs - b.providerAtMs || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
}

/** Without milliseconds where it has none: nobody should take them for known. */
function asTold(ms: number): string {
  return iso(ms).replace('.000Z', 'Z');
}

/** The end of a message that never was an attempt; the others end with their attempts and evidence. */
function endOf(facts: MessageFacts, merged: MergedMessage): { atMs: number; by: string } | null {
  if (!['refused', 'cancelled', 'expired'].includes(merged.status)) return null;
  if (facts.claim) return { atMs: facts.claim.updatedAtMs, by: 'sender' };
  return facts.range ? { atMs: facts.range.atMs, by: 'scheduler' } : null;
}

function waitingDetail(waiting: NonNullable<MessageFacts['waiting']>): Record<string, unknown> {
  return { reason: waiting.reason, until: isoOrNull(waiting.wakeAtMs), givesUpAt: isoOrNull(waiting.givesUpAtMs) };
}

function withoutNothing(detail: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(detail).filter(([, value]) => value !== null && value !== undefined));
}

function traceIdOf(traceparent: string | null): string | null {
  return traceparent?.split('-')[1] ?? null;
}
