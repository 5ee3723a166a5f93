import { Temporal } from 'temporal-polyfill';

/** Milliseconds of an ISO 8601 duration of days and smaller units (a day is 24 hours), or null when it is none or not positive. */
export function readDuration(text: string): number | null {
  let duration: Temporal.Duration;
  try {
    duration = Temporal.Duration.from(text);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  if (duration.years !== 0 || duration.months !== 0) return null;
  const ms = (duration.weeks * 7 + duration.days) * 86_400_000 + withoutCalendar(duration).total('milliseconds');
  return Number.isFinite(ms) && ms > 0 && Math.abs(ms) <= Number.MAX_SAFE_INTEGER ? Math.round(ms) : null;
}

function withoutCalendar(duration: Temporal.Duration): Temporal.Duration {
  return duration.with({ years: 0, months: 0, weeks: 0, days: 0 });
}

/** `2 h 5 min`, for people; two units at most. */
export function describeDuration(ms: number): string {
  const units: Array<[string, number]> = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ];
  const parts: string[] = [];
  let left = Math.abs(ms);
  for (const [name, size] of units) {
    const count = Math.floor(left / size);
    if (count === 0) {
      if (parts.length > 0) break;
      continue;
    }
    parts.push(`${count} ${name}`);
    left -= count * size;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(' ') : `${Math.round(left)} ms`;
}
