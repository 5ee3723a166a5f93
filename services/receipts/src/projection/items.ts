import type { Events, ReceiptKind } from '#contracts/events';
import type { DeliveryFact } from '../status/read-delivery';

/** Evidence about a message of ours. */
export interface Evidence {
  occurrenceId: Buffer;
  attempt: number;
  kind: ReceiptKind;
  providerAt: number;
  recordedAt: number;
  providerMessageId: string | null;
  code: string | null;
  providerCode: string | null;
  text: string | null;
}

/** Evidence that names the provider's id only. */
export type NamelessEvidence = Omit<Evidence, 'occurrenceId' | 'attempt' | 'providerMessageId'> & { providerMessageId: string };

export type RunEvent =
  | { name: 'RunPlanned'; event: Events['RunPlanned'] }
  | { name: 'RecipientsRefused'; event: Events['RecipientsRefused'] }
  | { name: 'RunReleased'; event: Events['RunReleased'] }
  | { name: 'RunHeld'; event: Events['RunHeld'] };

export type ScheduleEvent =
  | { name: 'ScheduleResumed'; event: Events['ScheduleResumed'] }
  | { name: 'ScheduleCancelled'; event: Events['ScheduleCancelled'] };

/** What one record asks the projection to do. */
export type Item =
  | { about: 'message'; delivery: DeliveryFact }
  | { about: 'evidence'; evidence: Evidence[]; nameless: NamelessEvidence[] }
  | { about: 'run'; told: RunEvent }
  | { about: 'schedule'; told: ScheduleEvent }
  | { about: 'nothing' };

export interface ReadRecord {
  offset: bigint;
  timestampMs: number;
  item: Item;
}

/** The records of one partition, read but not projected yet. */
export interface ReadBatch {
  topic: string;
  partition: number;
  records: ReadRecord[];
}

/** How much work a record is: one webhook may hold a thousand statuses. */
export function weightOf(item: Item): number {
  return item.about === 'evidence' ? Math.max(1, item.evidence.length + item.nameless.length) : 1;
}
