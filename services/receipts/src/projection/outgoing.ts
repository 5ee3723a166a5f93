import { hash } from 'node:crypto';
import { cloudEventHeaders } from '#contracts/cloud-events';
import type { Codec } from '#contracts/codec';
import type { Channel, EventName, Events, Mode } from '#contracts/events';
import { formatId, uuidBytes } from '#contracts/ids';
import type { Evidence } from './items';
import type { Change } from './message-rows';
import type { ShownRecipient } from './recipient-directory';
import type { RunCount, RunOutcome, RunStatus } from '../status/run-outcome';
import { countsOfEvent } from '../status/run-outcome';
import { sequenceOf } from '../status/message-status';
import { isRetryableByCustomer, textOfError } from '../status/message-error';

/** A row of the outbox. */
export interface Outgoing {
  topic: 'receipts' | 'status';
  key: Buffer;
  value: Buffer;
  headers: string;
}

/** What events say of the run of a message. */
export interface RunFrame extends PublicIds {
  runId: Buffer;
  scheduleId: string;
  tenantId: string;
  externalId: string | null;
  slot: string;
  mode: Mode;
  channel: Channel;
  labels: Record<string, string>;
}

/** The ids of a run as events write them: made once a batch and not once an event. */
export interface PublicIds {
  tenantText: string;
  scheduleText: string;
  runText: string;
}

export function publicIds(runId: Buffer, scheduleId: string, tenantId: string): PublicIds {
  return {
    tenantText: formatId('ten', uuidBytes(tenantId)),
    scheduleText: formatId('sch', uuidBytes(scheduleId)),
    runText: formatId('run', runId),
  };
}

export function receiptRecorded(codec: Codec, evidence: Evidence): Outgoing {
  const { occurrenceId, attempt, kind, providerAt, recordedAt, providerMessageId, code, providerCode, text } = evidence;
  const value = codec.encode('ReceiptRecorded', {
    eventId: eventIdOf(occurrenceId, providerAt, `${attempt}/${kind}/${providerCode ?? ''}`),
    at: recordedAt,
    occurrenceId,
    attempt,
    kind,
    providerAt,
    providerMessageId,
    code,
    providerCode,
    text,
  });
  return { topic: 'receipts', key: occurrenceId, value, headers: '' };
}

export function messageStatusChanged(
  codec: Codec,
  { occurrenceId, after, before, toldStatus }: Change,
  run: RunFrame,
  recipient: ShownRecipient | null,
  nowMs: number,
  evidenceEnded = false,
): Outgoing {
  const { facts, status } = after;
  const own = facts.own!;
  const messageId = formatId('msg', occurrenceId);
  const sequence = evidenceEnded ? sequenceOf(facts, true) : status.sequence;
  const event: Events['MessageStatusChanged'] = {
    eventId: eventIdOf(occurrenceId, sequence),
    at: nowMs,
    sequence,
    tenantId: run.tenantText,
    messageId,
    scheduleId: run.scheduleText,
    externalId: run.externalId,
    runId: run.runText,
    slot: run.slot,
    revision: own.revision,
    ref: recipient?.ref ?? null,
    to: recipient?.to ?? null,
    channel: run.channel,
    labels: run.labels,
    mode: run.mode,
    status: status.status,
    previousStatus: toldStatus,
    reason: status.reason,
    final: evidenceEnded || status.final,
    reachedProvider: status.reachedProvider,
    correction: toldStatus !== null && before !== null && before.status.final && toldStatus !== status.status,
    dueAt: own.dueAt,
    submittedAt: facts.submitted?.at ?? null,
    evidence: { sentAt: status.sentAt, deliveredAt: status.deliveredAt, readAt: status.readAt, failedAt: status.failedAt },
    attempts: facts.attempts,
    waitingFor: status.waiting,
    error: status.error && {
      code: status.error.code,
      retryable: isRetryableByCustomer(status.error.code),
      text: status.error.text ?? textOfError(status.error.code),
      providerCode: status.error.providerCode,
      at: status.error.at,
    },
  };
  return publicEvent(codec, 'MessageStatusChanged', 'punctual.message.status_changed', event, messageId, occurrenceId);
}

export interface ToldRun extends RunFrame {
  total: number;
  sequence: number;
  status: RunStatus;
  counts: RunCount[];
}

export function runProgressed(codec: Codec, run: ToldRun, nowMs: number): Outgoing {
  const event = { ...runEvent(run, nowMs) };
  return publicEvent(codec, 'RunProgressed', 'punctual.run.progressed', event, event.runId, run.runId);
}

export function runCompleted(
  codec: Codec,
  run: ToldRun & { outcome: RunOutcome; completedAt: number; correction: boolean },
  nowMs: number,
): Outgoing {
  const { outcome, completedAt, correction } = run;
  const event = { ...runEvent(run, nowMs), outcome, completedAt, correction };
  return publicEvent(codec, 'RunCompleted', 'punctual.run.completed', event, event.runId, run.runId);
}

function runEvent(run: ToldRun, nowMs: number): Events['RunProgressed'] {
  return {
    eventId: eventIdOf(run.runId, run.sequence),
    at: nowMs,
    sequence: run.sequence,
    tenantId: run.tenantText,
    runId: run.runText,
    scheduleId: run.scheduleText,
    externalId: run.externalId,
    slot: run.slot,
    labels: run.labels,
    mode: run.mode,
    status: run.status,
    total: run.total,
    counts: countsOfEvent(run.counts, run.total),
  };
}

export interface Hold extends PublicIds {
  runId: Buffer;
  scheduleId: string;
  externalId: string | null;
  sequence: number;
  reason: string;
  since: number;
  detail: string | null;
}

export function scheduleHeld(codec: Codec, hold: Hold, nowMs: number): Outgoing {
  const { since, detail } = hold;
  const event: Events['ScheduleHeld'] = { ...holdEvent(hold, nowMs), since, detail };
  return publicEvent(codec, 'ScheduleHeld', 'punctual.schedule.held', event, event.scheduleId, uuidBytes(hold.scheduleId));
}

export function scheduleHoldEnded(codec: Codec, hold: Hold, nowMs: number): Outgoing {
  const event: Events['ScheduleHoldEnded'] = holdEvent(hold, nowMs);
  return publicEvent(
    codec,
    'ScheduleHoldEnded',
    'punctual.schedule.hold_ended',
    event,
    event.scheduleId,
    uuidBytes(hold.scheduleId),
  );
}

function holdEvent(hold: Hold, nowMs: number) {
  return {
    eventId: eventIdOf(hold.runId, hold.sequence, 'hold'),
    at: nowMs,
    sequence: hold.sequence,
    tenantId: hold.tenantText,
    scheduleId: hold.scheduleText,
    externalId: hold.externalId,
    runId: hold.runText,
    reason: hold.reason,
  };
}

/** The same fact gives the same id, also after a rebuild. One call: a hash object weighs more than what it hashes. */
function eventIdOf(subject: Buffer, sequence: number, what = ''): string {
  return formatId('evt', hash('sha256', `${subject.toString('latin1')}${sequence}/${what}`, 'buffer').subarray(0, 16));
}

type PublicName = 'MessageStatusChanged' | 'RunProgressed' | 'RunCompleted' | 'ScheduleHeld' | 'ScheduleHoldEnded';

function publicEvent<N extends PublicName & EventName>(
  codec: Codec,
  name: N,
  type: string,
  event: Events[N],
  subject: string,
  key: Buffer,
): Outgoing {
  const headers = cloudEventHeaders({
    id: event.eventId,
    type,
    source: `/tenants/${event.tenantId}`,
    subject,
    timeMs: event.at,
    dataSchema: `urn:punctual:schema:${name}.v1`,
    partitionKey: subject,
    sequence: event.sequence,
  });
  return { topic: 'status', key, value: codec.encode(name, event), headers: JSON.stringify(headers) };
}
