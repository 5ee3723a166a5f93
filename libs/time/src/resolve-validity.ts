import { Temporal } from 'temporal-polyfill';
import { readDuration } from './duration';
import type { ResolvedTime } from './resolve-when';
import type { TimeFault } from './time-fault';

/** How late a message may be: a duration, or the next time that the wall clock shows this. */
export interface ValidityAsked {
  for?: string;
  untilLocal?: string;
}

export type ValidityAnswer = { ok: true; validUntilMs: number | null } | { ok: false; faults: TimeFault[] };

const CLOCK = /^([01]\d|2[0-3]):[0-5]\d$/;

/** `untilLocal` is read on the wall clock of the schedule's own zone; at or before the due time it means the next day. */
export function resolveValidity(validity: ValidityAsked | undefined, time: ResolvedTime, zoneWasAsked: boolean): ValidityAnswer {
  if (validity?.for !== undefined) {
    const ms = readDuration(validity.for);
    if (ms !== null) return { ok: true, validUntilMs: time.dueAtMs + ms };
    return fault('for', 'duration_invalid', 'not a positive ISO 8601 duration', 'PT2H, P1D and the like; days and smaller units');
  }
  if (validity?.untilLocal !== undefined) {
    if (!CLOCK.test(validity.untilLocal)) {
      return fault('untilLocal', 'validity_invalid', 'not a time of day', '00:00 to 23:59');
    }
    if (!zoneWasAsked) {
      return fault(
        'untilLocal',
        'time_zone_required',
        'a local end needs a zone; give when.timeZone',
        'an IANA name in when.timeZone',
      );
    }
    return { ok: true, validUntilMs: nextLocal(time, validity.untilLocal) };
  }
  return { ok: true, validUntilMs: null };
}

function nextLocal(time: ResolvedTime, clock: string): number {
  const due = Temporal.Instant.fromEpochMilliseconds(time.dueAtMs).toZonedDateTimeISO(time.timeZone);
  for (let date = due.toPlainDate(); ; date = date.add({ days: 1 })) {
    const end = date
      .toPlainDateTime(Temporal.PlainTime.from(clock))
      .toZonedDateTime(time.timeZone, { disambiguation: 'compatible' });
    if (end.epochMilliseconds > time.dueAtMs) return end.epochMilliseconds;
  }
}

function fault(member: string, code: TimeFault['code'], detail: string, allowed: string): ValidityAnswer {
  return { ok: false, faults: [{ member: [member], code, detail, allowed }] };
}
