import { Temporal } from 'temporal-polyfill';
import type { TimeFault } from './time-fault';

export interface Zone {
  /** The name that was asked for, in the spelling of the time zone database. */
  name: string;
  /** One name for all aliases: what zones are compared and grouped by. */
  key: string;
}

export type ZoneAnswer = { ok: true; zone: Zone } | { ok: false; fault: TimeFault };

const OFFSET_ONLY = /^[+-]\d{2}(?::?\d{2})?$/;
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;

/** Names are case-insensitive. Fixed offsets are no zones: they know no daylight saving time and belong into the time itself. */
export function readZone(text: string): ZoneAnswer {
  if (OFFSET_ONLY.test(text)) {
    return unknown(`"${text}" is an offset and not a zone; write it at the end of the time instead`);
  }
  if (ZONE_NAME.test(text)) {
    try {
      const name = new Temporal.ZonedDateTime(0n, text).timeZoneId;
      return { ok: true, zone: { name, key: zoneKey(name) } };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  const near = nearestZone(text);
  return unknown(`there is no time zone "${text.slice(0, 64)}" in the time zone database (${process.versions.tz})`, near);
}

function unknown(detail: string, near?: string): ZoneAnswer {
  const fault: TimeFault = {
    member: ['timeZone'],
    code: 'time_zone_unknown',
    detail,
    allowed: 'an IANA name such as Europe/Berlin',
  };
  if (near) fault.hint = `${near}?`;
  return { ok: false, fault };
}

const keys = new Map<string, string>();

/** ICU answers one and the same id for every alias, whichever it prefers; Temporal keeps the spelling that it was given. */
function zoneKey(name: string): string {
  let key = keys.get(name);
  if (key === undefined) {
    key = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
    keys.set(name, key);
  }
  return key;
}

export function isSameZone(a: string, b: string): boolean {
  return zoneKey(a) === zoneKey(b);
}

/** The zone whose whole name or city is at most a third of its letters away, or nothing. */
function nearestZone(text: string): string | undefined {
  if (text.length > 64) return undefined;
  const asked = text.toLowerCase().replaceAll(' ', '_');
  let best: { name: string; distance: number } | undefined;
  for (const name of Intl.supportedValuesOf('timeZone')) {
    const whole = name.toLowerCase();
    const city = whole.slice(whole.lastIndexOf('/') + 1);
    for (const candidate of [whole, city]) {
      const limit = Math.floor(Math.max(asked.length, candidate.length) / 3);
      const distance = editDistance(asked, candidate, Math.min(limit, best ? best.distance - 1 : limit));
      if (distance !== undefined) best = { name, distance };
    }
  }
  return best?.name;
}

/** Levenshtein distance, or undefined where it is above `limit`. */
function editDistance(a: string, b: string, limit: number): number | undefined {
  if (limit < 0 || Math.abs(a.length - b.length) > limit) return undefined;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  const distance = previous[b.length]!;
  return distance <= limit ? distance : undefined;
}
