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
}

export interface ClaimedMessage {
  message: LaneMessage;
  claim: Claimed;
  /** Monotonic, counted from before the gate was called: after it nothing may be written. */
  deadlineAt: number;
}
