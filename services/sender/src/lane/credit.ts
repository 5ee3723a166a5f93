/**
 * How many more records the lane of a number takes: what it sends in the window, less what it has. None while nothing can be sent,
 * so that what waits stays with the scheduler, where a more urgent run can still overtake it and a cancel still prevents it.
 */
export function laneCredit(lane: { ratePerSecond: number; queued: number; blocked: boolean }, windowMs: number): number {
  if (lane.blocked) return 0;
  // At least one: a number slower than one message a window would never be given any.
  const room = Math.max(1, Math.floor((lane.ratePerSecond * windowMs) / 1_000));
  return Math.max(0, room - lane.queued);
}

/**
 * Which levels to tell: those that changed, and those under which records arrived, since the scheduler subtracts what it
 * releases and a level that looks the same to us is a smaller one to it. All of them when a refresh is due: it forgets in 5 s.
 */
export class CreditReport {
  private readonly told = new Map<string, number>();
  private readonly arrived = new Set<string>();

  received(numberId: string): void {
    this.arrived.add(numberId);
  }

  due(levels: ReadonlyMap<string, number>, refresh: boolean): Map<string, number> {
    const due = new Map<string, number>();
    for (const [numberId, level] of levels) {
      if (refresh || this.arrived.has(numberId) || this.told.get(numberId) !== level) due.set(numberId, level);
    }
    // A number that is no longer ours is given up once, with nothing.
    for (const numberId of this.told.keys()) if (!levels.has(numberId)) due.set(numberId, 0);
    return due;
  }

  /** Only what was really told counts as told. */
  reported(report: ReadonlyMap<string, number>, levels: ReadonlyMap<string, number>): void {
    for (const [numberId, level] of report) {
      if (levels.has(numberId)) this.told.set(numberId, level);
      else this.told.delete(numberId);
      this.arrived.delete(numberId);
    }
  }
}
