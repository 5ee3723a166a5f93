import type { Found } from '../audience/message-source';
import type { Claimed, DueItem } from '../postgres/gate-port';

/** Where a message came from, and who must hear that the gate has answered. */
export type Origin =
  | { from: 'kafka'; topic: string; partition: number; offset: bigint; releasedAt: number }
  | { from: 'waiting'; reason: string; since: number; attempt: number };

export interface LaneMessage {
  item: DueItem;
  priority: number;
  origin: Origin;
  traceparent: string | null;
  /** Wall clock, when this process got it. */
  receivedAt: number;
  found: Found;
  /** The gate was asked before and its answer was lost: what it calls a duplicate now may be our own claim. */
  askedBefore?: boolean;
  /** How often the gate failed on this very message. */
  faults?: number;
}

export interface ClaimedMessage {
  message: LaneMessage;
  claim: Claimed;
  /** Monotonic, counted from before the gate was called: after it nothing may be written. */
  deadlineAt: number;
  /** The request, once it was built: a message that missed its slot need not be built again. */
  body?: string;
}
