import { RECIPIENT_HASH_BYTES } from '#contracts/ids';
import type { RecipientSet } from './recipient-set';

/** A part of a run that may be handed over now: positions from..until, at most `quota` of them. */
export interface Slice {
  runId: Buffer;
  scheduleId: Buffer;
  numberId: Buffer;
  providerIdentity: string;
  revision: number;
  priority: number;
  /** 0 for the first release of a revision, then how often it was released again. */
  pass: number;
  leaveOut: 'claimed' | 'answered' | null;
  /** Virtual time at which the slice starts being served. */
  startTag: number;
  from: number;
  until: number;
  quota: number;
  dueAt: number;
  validUntil: number | null;
  traceparent: string | null;
  /** 8 bytes for each position from..until; fewer if the audience has a chunk less than it should. */
  hashes: Buffer;
}

export interface Chosen {
  /** Positions to hand over, ascending. */
  positions: number[];
  /** Where the cursor goes when they are handed over. */
  until: number;
}

/** Which positions of a slice are handed over: all but those left out, until the quota is full. */
export function choosePositions(slice: Pick<Slice, 'from' | 'until' | 'quota' | 'hashes'>, leaveOut?: RecipientSet): Chosen {
  const positions: number[] = [];
  let at = slice.from;
  for (; at < slice.until && positions.length < slice.quota; at++) {
    if (leaveOut?.has(slice.hashes, (at - slice.from) * RECIPIENT_HASH_BYTES)) continue;
    positions.push(at);
  }
  // Those behind the last one need no look of their own if they are left out as well.
  while (leaveOut && at < slice.until && leaveOut.has(slice.hashes, (at - slice.from) * RECIPIENT_HASH_BYTES)) at++;
  return { positions, until: at };
}

export function isWhole(slice: Pick<Slice, 'from' | 'until' | 'hashes'>): boolean {
  return slice.hashes.length === (slice.until - slice.from) * RECIPIENT_HASH_BYTES;
}
