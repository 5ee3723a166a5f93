/** A released run that has recipients without an answer long after they were handed over. */
export interface UnansweredRun {
  /** Of its schedule's gate; null where there is none. */
  gateStatus: 'active' | 'paused' | 'cancelled' | null;
  /** Its validity has passed. */
  expired: boolean;
  /** How often it was released again before. */
  releasesAgain: number;
}

export type UnansweredDecision =
  | { kind: 'release_again' }
  | { kind: 'refuse'; status: 'cancelled'; reason: 'cancelled' }
  | { kind: 'refuse'; status: 'expired'; reason: 'expired' }
  | { kind: 'refuse'; status: 'refused'; reason: 'internal' };

/** After that many, what is still lost is refused where everybody can see it. */
export const MOST_RELEASES_AGAIN = 3;

export function decideUnanswered({ gateStatus, expired, releasesAgain }: UnansweredRun): UnansweredDecision {
  if (gateStatus === 'cancelled') return { kind: 'refuse', status: 'cancelled', reason: 'cancelled' };
  if (expired) return { kind: 'refuse', status: 'expired', reason: 'expired' };
  if (gateStatus !== null && releasesAgain < MOST_RELEASES_AGAIN) return { kind: 'release_again' };
  return { kind: 'refuse', status: 'refused', reason: 'internal' };
}
