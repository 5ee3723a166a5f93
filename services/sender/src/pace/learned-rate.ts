/**
 * The pace of a number that its provider throttled: half, and back by 5 % of the allowed rate a second. Answers to calls that
 * were already out when the pace was halved halve it no further.
 */
export class LearnedRate {
  private base: number;
  private atChange: number;
  private changedAt = 0;
  private deafUntil = Number.NEGATIVE_INFINITY;

  constructor(allowed: number, learned: number = allowed, now = 0) {
    this.base = allowed;
    this.atChange = Math.min(allowed, Math.max(learned, floorOf(allowed)));
    this.changedAt = now;
  }

  get allowed(): number {
    return this.base;
  }

  at(now: number): number {
    if (this.atChange >= this.base) return this.base;
    return Math.min(this.base, this.atChange + (this.base * RECOVERY_PER_SECOND * Math.max(0, now - this.changedAt)) / 1_000);
  }

  /** False when this answer belongs to calls that were out before the last halving. */
  throttled(now: number): boolean {
    if (now < this.deafUntil) return false;
    this.atChange = Math.max(floorOf(this.base), this.at(now) / 2);
    this.changedAt = now;
    this.deafUntil = now + DEAF_MS;
    return true;
  }

  allow(allowed: number, now: number): void {
    if (allowed === this.base) return;
    const wasWhole = this.at(now) >= this.base;
    this.atChange = wasWhole ? allowed : Math.min(allowed, this.at(now));
    this.base = allowed;
    this.changedAt = now;
  }
}

const RECOVERY_PER_SECOND = 0.05;
/** Longer than most calls are out. */
const DEAF_MS = 1_000;
/** Below this a number would need minutes for its first message after a bad spell. */
const LEAST_SHARE = 1 / 64;

function floorOf(allowed: number): number {
  return Math.min(allowed, Math.max(allowed * LEAST_SHARE, 0.1));
}
