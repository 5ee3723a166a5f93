import type { ClaimState, MessageStatus } from '#contracts/words';

/** The gate's row of a message, live. */
export interface ClaimFact {
  state: ClaimState;
  step: number;
  attempt: number;
  reason: string | null;
  errorCode: string | null;
  nextAttemptAtMs: number | null;
  providerMessageId: string | null;
  updatedAtMs: number;
  /** An earlier attempt may have reached the provider. */
  wasUncertain: boolean;
}

export interface WaitingFact {
  reason: string;
  sinceMs: number;
  wakeAtMs: number | null;
  givesUpAtMs: number | null;
}

/** The read model's row: all facts that have arrived there, joined. */
export interface ProjectedFact {
  status: MessageStatus;
  /** Null while only evidence is known. */
  step: number | null;
  revision: number | null;
  reason: string | null;
  waiting: WaitingFact | null;
  attempts: number;
  submittedAtMs: number | null;
  sentAtMs: number | null;
  deliveredAtMs: number | null;
  readAtMs: number | null;
  failedAtMs: number | null;
  error: { code: string; providerCode: string | null; text: string | null; atMs: number | null } | null;
  providerMessageId: string | null;
  waits: Array<{ reason: string; ms: number }>;
}

/** A range of recipients that ended without ever being released. */
export interface RangeFact {
  status: 'refused' | 'cancelled' | 'expired' | 'failed';
  reason: string;
  atMs: number;
}

export interface MessageFacts {
  claim: ClaimFact | null;
  waiting: WaitingFact | null;
  projected: ProjectedFact | null;
  range: RangeFact | null;
}

/** What is true of all messages of a schedule that nothing else is known of. */
export interface ScheduleFacts {
  cancelled: boolean;
  pausedSinceMs: number | null;
  dueAtMs: number;
  nowMs: number;
  /** Null while messages can still be sent, or while late evidence is still usual. */
  evidenceEnded: boolean;
}
