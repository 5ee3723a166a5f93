import { NumberPace } from '../pace/number-pace';
import { Fifo } from './fifo';
import type { ClaimedMessage, LaneMessage } from './lane-message';
import { PriorityQueue } from './priority-queue';

/** Why the lane of a number sends nothing now. */
export type LaneBlock = 'held' | 'circuit' | 'no_credentials' | 'not_owned' | 'removed';

export interface LaneHold {
  reason: 'account' | 'circuit' | 'template';
  until: number | null;
  /** Whether the gate knows of it: before, it would let messages through that can't be sent. */
  stored: boolean;
}

/** Everything this process has of one number: what waits, what is at the gate, what is claimed, what is with the provider. */
export class NumberLane {
  readonly queue = new PriorityQueue<LaneMessage>();
  readonly ready = new Fifo<ClaimedMessage>();
  readonly pace: NumberPace;
  /** Content and recipient are being read. */
  loading = 0;
  claiming = 0;
  inFlight = 0;
  reserving = false;
  /** Monotonic: when the send loop has to look at it again. */
  lookAt = Number.NEGATIVE_INFINITY;
  /** A lane starts without an owner; the directory says whose it is. */
  block: LaneBlock | null = 'not_owned';
  /** Of `held`: why, and until when (wall clock; null: until somebody ends it). */
  hold: LaneHold | null = null;
  /** Rises when the partition is taken away: what was begun before belongs to nobody any more. */
  ownership = 0;

  constructor(
    readonly numberId: string,
    readonly providerIdentity: string,
    readonly partition: number,
    ratePerSecond: number,
    pacing: { horizonMs: number; marginMs: number },
    now: number,
    learnedRate?: number,
  ) {
    this.pace = new NumberPace(ratePerSecond, pacing.horizonMs, learnedRate, now, pacing.marginMs);
  }

  /** What came and is not sent yet: what the scheduler's credit is lessened by. */
  get queued(): number {
    return this.loading + this.queue.size + this.claiming + this.ready.size;
  }

  get demand(): number {
    return this.queue.size + this.claiming + this.ready.size;
  }

  get active(): boolean {
    return this.demand > 0;
  }
}
