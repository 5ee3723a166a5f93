import { Temporal } from 'temporal-polyfill';

/** What to do with a local time that a zone skips, and with one that it has twice. */
export type GapRule = 'shift' | 'skip';
export type FoldRule = 'first' | 'second' | 'both';
/** By which rule an instant came out of a local time; stored with it. */
export type ResolutionRule = 'exact' | 'gap_shift' | 'fold_first' | 'fold_second' | 'offset' | 'now';

export interface LocalTimeMeaning {
  instants: Array<{ at: Temporal.ZonedDateTime; rule: ResolutionRule }>;
  kind: 'exact' | 'gap' | 'fold';
}

/**
 * All instants that a wall-clock time means in a zone: one; for a skipped time the shifted one (Temporal's `compatible`:
 * 02:30 becomes 03:30) or none; for a doubled time the first, the second, or both.
 */
export function resolveLocalTime(local: Temporal.PlainDateTime, zone: string, gap: GapRule, fold: FoldRule): LocalTimeMeaning {
  const first = local.toZonedDateTime(zone, { disambiguation: 'earlier' });
  const second = local.toZonedDateTime(zone, { disambiguation: 'later' });
  if (first.epochNanoseconds === second.epochNanoseconds) return { kind: 'exact', instants: [{ at: first, rule: 'exact' }] };

  const isFold = first.toPlainDateTime().equals(local) && second.toPlainDateTime().equals(local);
  if (!isFold) {
    // In a gap `later` is what `compatible` gives: the wall clock moved forward by the length of the gap.
    return { kind: 'gap', instants: gap === 'skip' ? [] : [{ at: second, rule: 'gap_shift' }] };
  }
  const both: LocalTimeMeaning['instants'] = [
    { at: first, rule: 'fold_first' },
    { at: second, rule: 'fold_second' },
  ];
  if (fold === 'both') return { kind: 'fold', instants: both };
  return { kind: 'fold', instants: [fold === 'first' ? both[0]! : both[1]!] };
}
