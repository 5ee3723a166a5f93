import { Temporal } from 'temporal-polyfill';
import { describeDuration } from './duration';
import { resolveLocalTime, type FoldRule, type GapRule, type ResolutionRule } from './resolve-local-time';
import type { TimeFault } from './time-fault';
import { readZone, type Zone } from './time-zone';

/** A one-off time as a customer writes it: a local time in a zone, a time with an offset, or now. */
export interface WhenAsked {
  at?: string;
  timeZone?: string;
  now?: true;
  gap?: GapRule;
  fold?: FoldRule;
}

export interface ResolvedTime {
  /** The zone's name as asked for; `UTC` or an offset such as `+05:30` where only that was given. */
  timeZone: string;
  /** The wall-clock time that was asked for, without offset; for `now` that of the moment itself. */
  local: string;
  /** What the wall clock shows at the instant, with offset. */
  resolvedLocal: string;
  dueAtMs: number;
  rule: ResolutionRule;
  /** What a person should know about the way it was resolved. */
  note: string | null;
  /** Version of the time zone database that the instant was derived with; another one may give another. */
  tzdb: string;
}

export type WhenAnswer = { ok: true; time: ResolvedTime } | { ok: false; faults: TimeFault[] };

/** A time this far past is still done, at once: requests take a while to arrive. Older ones are refused. */
export const PAST_TOLERANCE_MS = 60_000;

const AT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::[0-5]\d(?:\.\d{1,3})?)?)(Z|[+-]\d{2}:\d{2})?$/i;

export function resolveWhen(when: WhenAsked, nowMs: number): WhenAnswer {
  const faults: TimeFault[] = [];
  let zone: Zone | undefined;
  if (when.timeZone !== undefined) {
    const answer = readZone(when.timeZone);
    if (answer.ok) zone = answer.zone;
    else faults.push(answer.fault);
  }
  if (when.fold === 'both') {
    faults.push({
      member: ['fold'],
      code: 'fold_both_needs_repeat',
      detail: 'only a repeating time can happen twice on the night when the clock goes back',
      allowed: 'first or second',
    });
  }
  if (when.now) faults.push(...needlessRules(when, 'now is one moment'));
  if (when.now) return faults.length > 0 ? { ok: false, faults } : { ok: true, time: resolveNow(zone, nowMs) };

  const parsed = when.at === undefined ? undefined : readAt(when.at);
  if (!parsed) {
    faults.push({
      member: ['at'],
      code: 'time_unparseable',
      detail: 'not a date and time that exists in the calendar',
      allowed: '2027-03-28T02:30:00 with timeZone, or with an offset: 2027-03-28T02:30:00+02:00',
    });
    return { ok: false, faults };
  }
  if (parsed.offset === undefined && when.timeZone === undefined) {
    faults.push({
      member: ['timeZone'],
      code: 'time_zone_required',
      detail: 'a time without an offset needs the zone that it is meant in',
      allowed: 'an IANA name such as Europe/Berlin',
    });
  }
  if (parsed.offset !== undefined) faults.push(...needlessRules(when, 'a time with an offset is one moment'));
  if (faults.length > 0) return { ok: false, faults };

  const answer =
    parsed.offset === undefined
      ? fromZone(parsed.local, zone!, when.gap ?? 'shift', when.fold ?? 'first')
      : fromOffset(parsed.local, parsed.offset, zone);
  if (!answer.ok) return answer;
  const lateMs = nowMs - answer.time.dueAtMs;
  if (lateMs > PAST_TOLERANCE_MS) {
    return fault('at', 'time_in_past', `${answer.time.resolvedLocal} is ${describeDuration(lateMs)} past`, {
      allowed: `now, a future time, or one at most ${PAST_TOLERANCE_MS / 1000} s past`,
    });
  }
  return answer;
}

/** Somebody who gives a rule that decides nothing expects something that won't happen. */
function needlessRules(when: WhenAsked, why: string): TimeFault[] {
  return (['gap', 'fold'] as const)
    .filter((member) => when[member] !== undefined)
    .map((member) => ({
      member: [member],
      code: 'rule_without_local_time',
      detail: `${why}: no clock change makes it missing or double, so there is nothing for ${member} to decide`,
      allowed: 'a local time in `at`, without offset and with `timeZone`',
      hint: `leave ${member} out`,
    }));
}

function readAt(text: string): { local: Temporal.PlainDateTime; offset: string | undefined } | undefined {
  const match = AT.exec(text);
  if (!match) return undefined;
  try {
    return { local: Temporal.PlainDateTime.from(match[1]!, { overflow: 'reject' }), offset: match[2]?.toUpperCase() };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function resolveNow(zone: Zone | undefined, nowMs: number): ResolvedTime {
  const at = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(zone?.name ?? 'UTC');
  return resolved(at.toPlainDateTime(), at, zone?.name ?? 'UTC', 'now', null);
}

function fromZone(local: Temporal.PlainDateTime, zone: Zone, gap: GapRule, fold: FoldRule): WhenAnswer {
  const meaning = resolveLocalTime(local, zone.name, gap, fold);
  const chosen = meaning.instants[0];
  const clock = local.toPlainTime().toString({ smallestUnit: 'minute' });
  if (!chosen) {
    return fault(
      'at',
      'local_time_does_not_exist',
      `${clock} does not exist on this date in ${zone.name}: the clock goes forward over it`,
      {
        allowed: 'a time that exists, or "gap": "shift"',
      },
    );
  }
  const note =
    meaning.kind === 'gap'
      ? `${clock} does not exist on this date in ${zone.name}`
      : meaning.kind === 'fold'
        ? `${clock} happens twice on this date in ${zone.name}; this is the ${chosen.rule === 'fold_first' ? 'first' : 'second'}`
        : null;
  return { ok: true, time: resolved(local, chosen.at, zone.name, chosen.rule, note) };
}

function fromOffset(local: Temporal.PlainDateTime, offset: string, zone: Zone | undefined): WhenAnswer {
  let instant: Temporal.Instant;
  try {
    instant = Temporal.Instant.from(`${local.toString()}${offset}`);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return fault('at', 'time_unparseable', `${offset} is not an offset from UTC`);
  }
  if (!zone) {
    const name = offset === 'Z' ? 'UTC' : offset;
    return { ok: true, time: resolved(local, instant.toZonedDateTimeISO(name), name, 'offset', null) };
  }
  const at = instant.toZonedDateTimeISO(zone.name);
  // "Z" beside a zone is a contradiction too, unless the zone is at UTC then: it would silently mean another wall-clock time.
  if (!at.toPlainDateTime().equals(local)) {
    const { instants } = resolveLocalTime(local, zone.name, 'shift', 'both');
    const offsets = instants.map((meaning) => meaning.at.offset).join(' or ');
    return fault('at', 'offset_contradicts_zone', `${zone.name} is not at ${offset} at this time but at ${offsets}`, {
      hint: `leave the offset out, or leave timeZone out`,
    });
  }
  return { ok: true, time: resolved(local, at, zone.name, 'offset', null) };
}

function resolved(
  local: Temporal.PlainDateTime,
  at: Temporal.ZonedDateTime,
  timeZone: string,
  rule: ResolutionRule,
  note: string | null,
): ResolvedTime {
  return {
    timeZone,
    local: local.toString({ smallestUnit: local.millisecond === 0 ? 'second' : 'millisecond' }),
    resolvedLocal: at.toString({ timeZoneName: 'never', smallestUnit: at.millisecond === 0 ? 'second' : 'millisecond' }),
    dueAtMs: at.epochMilliseconds,
    rule,
    note,
    tzdb: process.versions.tz ?? 'unknown',
  };
}

function fault(member: string, code: TimeFault['code'], detail: string, more: Partial<TimeFault> = {}): WhenAnswer {
  return { ok: false, faults: [{ member: [member], code, detail, ...more }] };
}
