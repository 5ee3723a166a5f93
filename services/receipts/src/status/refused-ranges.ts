/** Recipients of a run that ended together, before any of them was released. */
export interface RefusedRange {
  revision: number;
  from: number;
  /** Exclusive. */
  until: number;
  /** How many of them were refused: the range may hold others, which have claims. */
  count: number;
  status: string;
  reason: string;
  at: number;
}

export interface Segment {
  from: number;
  until: number;
}

/** A range beside the parts of it that no earlier told range of the run has taken. */
export interface RangeShare {
  range: RefusedRange;
  segments: Segment[];
}

/**
 * Which positions count for which range. A newer revision releases the run again and takes back what an older one refused; in
 * one revision a position belongs to the range that was told first.
 */
export function shareOutRanges(ranges: readonly RefusedRange[], revision: number): RangeShare[] {
  const inForce = ranges.filter((range) => range.revision === revision).sort(compareRanges);
  let taken: Segment[] = [];
  return inForce.map((range) => {
    const segments = subtract({ from: range.from, until: range.until }, taken);
    taken = [...taken, ...segments].sort((a, b) => a.from - b.from);
    return { range, segments };
  });
}

/**
 * What a range adds to the counters, when `answered` of its positions have facts of their own: those outrank it. Positions that
 * the range does not count are all answered sooner or later, so the count holds until more are answered than it left out.
 */
export function weightOf(share: RangeShare, answered: number): number {
  return Math.max(0, Math.min(share.range.count, sizeOf(share.segments) - answered));
}

export function shareWith(shares: readonly RangeShare[], position: number): RangeShare | undefined {
  return shares.find(({ segments }) => segments.some(({ from, until }) => position >= from && position < until));
}

export function sizeOf(segments: readonly Segment[]): number {
  return segments.reduce((size, { from, until }) => size + until - from, 0);
}

function compareRanges(a: RefusedRange, b: RefusedRange): number {
  return a.at - b.at || a.from - b.from || a.until - b.until || (a.status < b.status ? -1 : a.status > b.status ? 1 : 0);
}

function subtract(whole: Segment, taken: readonly Segment[]): Segment[] {
  const left: Segment[] = [];
  let from = whole.from;
  for (const other of taken) {
    if (other.until <= from || other.from >= whole.until) continue;
    if (other.from > from) left.push({ from, until: other.from });
    from = Math.max(from, other.until);
  }
  if (from < whole.until) left.push({ from, until: whole.until });
  return left;
}
