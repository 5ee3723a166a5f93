import type { RunPlanned, ScheduleRequested, ScheduleRevised } from '#contracts/events';
import { derivedEventId, parseId, uuidText, type IdKind } from '#contracts/ids';

/** A row of the due index in the making: one slot of one revision. Ids are hex or UUID text, instants epoch milliseconds. */
export interface PlannedRun {
  runId: string;
  scheduleId: string;
  tenantId: string;
  numberId: string;
  providerIdentity: string;
  slot: string;
  timeZone: string;
  version: number;
  revision: number;
  audienceId: string;
  total: number;
  priority: number;
  dueAt: number;
  validUntil: number | null;
  traceparent: string | null;
  event: RunPlanned;
}

export class UnplannableError extends Error {
  override readonly name = 'UnplannableError';
  readonly code = 'schedule_unplannable';
}

export function planRuns(schedule: ScheduleRequested | ScheduleRevised): PlannedRun[] {
  const scheduleId = bytesOf('sch', schedule.scheduleId);
  const tenantId = bytesOf('ten', schedule.tenantId);
  const numberId = bytesOf('num', schedule.numberId);
  const audienceId = bytesOf('aud', schedule.audienceId);
  return schedule.slots.map((slot) => {
    const runId = bytesOf('run', slot.runId);
    return {
      runId: runId.toString('hex'),
      scheduleId: uuidText(scheduleId),
      tenantId: uuidText(tenantId),
      numberId: uuidText(numberId),
      providerIdentity: schedule.providerIdentity,
      slot: slot.slot,
      timeZone: slot.timeZone,
      version: schedule.version,
      revision: schedule.revision,
      audienceId: uuidText(audienceId),
      total: schedule.recipients,
      priority: schedule.priority,
      dueAt: slot.dueAt,
      validUntil: slot.validUntil,
      traceparent: schedule.traceparent,
      event: {
        eventId: derivedEventId('RunPlanned', runId, schedule.revision),
        at: schedule.at,
        runId,
        scheduleId,
        tenantId,
        externalId: schedule.externalId,
        numberId,
        slot: slot.slot,
        revision: schedule.revision,
        total: schedule.recipients,
        dueAt: slot.dueAt,
        validUntil: slot.validUntil,
        mode: schedule.mode,
        channel: schedule.channel,
        labels: schedule.labels,
        correlationId: schedule.correlationId,
        traceparent: schedule.traceparent,
      },
    };
  });
}

/** Throws an UnplannableError. */
export function bytesOf(kind: IdKind, text: string): Buffer {
  const bytes = parseId(kind, text);
  if (!bytes) throw new UnplannableError(`the schedule names an id that is no ${kind} id; the record is parked`);
  return bytes;
}
