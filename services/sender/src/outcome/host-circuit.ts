const FAILURES_TO_OPEN = 5;
const FIRST_OPEN_MS = 1_000;
const LONGEST_OPEN_MS = 30_000;

/**
 * Opens when calls to a host can't even be begun (no name, no connection, no handshake): going on would only turn messages into
 * attempts. When it has been open for its time, calls are let through again; the first that fails opens it for twice as long.
 */
export class HostCircuit {
  private failures = 0;
  private openings = 0;
  private until = Number.NEGATIVE_INFINITY;

  isOpen(now: number): boolean {
    return now < this.until;
  }

  get openUntil(): number {
    return this.until;
  }

  reached(): void {
    this.failures = 0;
    this.openings = 0;
  }

  /** For how long it opens now; 0 when it does not, or is open already. */
  notReached(now: number): number {
    if (this.isOpen(now)) return 0;
    this.failures++;
    if (this.openings === 0 && this.failures < FAILURES_TO_OPEN) return 0;
    const openMs = Math.min(LONGEST_OPEN_MS, FIRST_OPEN_MS * 2 ** this.openings);
    this.openings++;
    this.until = now + openMs;
    return openMs;
  }
}
