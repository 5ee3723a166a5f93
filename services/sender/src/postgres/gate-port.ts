import type { ClaimState, MessageErrorCode, RefusalReason, WaitReason } from '#contracts/words';

/**
 * What the database side of the sender offers to its lanes, its provider calls and its evidence consumer.
 * Ids of schedules, tenants and numbers are UUID texts, ids of occurrences and runs are bytes, instants are milliseconds since
 * the epoch on PostgreSQL's clock. Every call is one statement for the whole batch; more than MAX_BATCH items are split.
 */
export const MAX_BATCH = 200;

// ---------------------------------------------------------------------------------------------------------------------------
// The gate

/** A due occurrence that asks to be sent: an ExecutionDue with uuids as text. */
export interface DueItem {
  occurrenceId: Buffer;
  scheduleId: string;
  revision: number;
  numberId: string;
  dueAt: number;
  validUntil: number | null;
  priority: number;
  position: number;
  /** Looked up among the suppressions of the tenant's channel and category; null: not looked up. */
  recipientHash?: Buffer | null;
  /** `templateKey(account, name, language)` when the content is a template: a hold of that template holds the message. */
  templateKey?: string | null;
  /** Only kept when the item is parked: the record's key and value as they came. Taken from the item itself when absent. */
  record?: { key: Buffer; value: Buffer };
}

export interface DecideOptions {
  /** Of this process; kept with each attempt. */
  instance: string;
  /** From the claim to the last instant at which an answer may come: send within + the provider's deadline. */
  deadlineMs: number;
}

/** What the schedule says now about what happens after this attempt. */
export interface SendPolicy {
  tenantId: string;
  mode: 'test' | 'live';
  onUncertain: 'leave' | 'resend';
  retryDelaysMs: readonly number[];
}

export interface Claimed extends SendPolicy {
  kind: 'claimed';
  attempt: number;
  step: number;
  /** Content of this revision is sent: the claim's, which an item that was released later may not have. */
  revision: number;
  /** How many of the message's own retries were used; index into retryDelaysMs. */
  retriesUsed: number;
  /** PostgreSQL's clock. The socket must be written by a monotonic deadline counted from before the call to the gate. */
  deadlineAt: number;
}

export type Verdict =
  | Claimed
  /** Recorded and published; nothing left to do. `failed` only with `hold_expired`. */
  | {
      kind: 'final';
      status: 'cancelled' | 'expired' | 'refused' | 'failed';
      reason: RefusalReason | 'hold_expired';
      afterUncertain: boolean;
    }
  /** Kept as a waiting row. `not_yet` (the due time is ahead on PostgreSQL's clock) is the only reason that is not published. */
  | { kind: 'held'; reason: WaitReason | 'not_yet'; wakeAt: number; since: number; givesUpAt: number }
  /** `superseded`: an older revision than the schedule's. The slot goes to the number's next message. */
  | { kind: 'silent'; why: 'duplicate' | 'superseded' }
  /** There is evidence about an earlier attempt, so the claim took that outcome and no attempt follows. */
  | { kind: 'settled'; state: 'accepted' | 'failed' }
  /** No gate row: kept as a parked row, offered again when the gate row appears. */
  | { kind: 'parked' };

// ---------------------------------------------------------------------------------------------------------------------------
// Results

interface ResultBase {
  occurrenceId: Buffer;
  attempt: number;
  /** When the request was written to the socket; null when it never was. */
  calledAt: number | null;
  endedAt: number;
  /** Where the time since due went; goes into the attempt's row and MessageSubmitted. */
  waits?: ReadonlyArray<{ reason: string; ms: number }>;
  /** 32 hex digits, shown in the timeline. */
  traceId?: string | null;
  traceparent?: string | null;
}

export interface ProviderError {
  code: MessageErrorCode;
  providerCode?: string | null;
  text?: string | null;
}

export type AttemptResult =
  | (ResultBase & { outcome: 'accepted'; providerMessageId: string | null; providerStatus: 'accepted' | 'held' })
  | (ResultBase & ProviderError & { outcome: 'failed'; reachedProvider: boolean })
  /** Known not sent, another attempt at `nextAttemptAt`. `usesRetry`: the error was the message's own. */
  | (ResultBase & ProviderError & { outcome: 'retry'; nextAttemptAt: number; usesRetry: boolean; waitReason: WaitReason })
  /** Not one byte was written (drain, zombie check, slot too old): may be sent again at once. */
  | (ResultBase & { outcome: 'not_sent'; text?: string | null; nextAttemptAt?: number })
  /** The provider may have it. The gate keeps it until the evidence window ends. */
  | (ResultBase & { outcome: 'uncertain'; reason: string; text?: string | null });

/** `late`: recorded with the attempt, but the claim had moved on, so nothing was published. */
export interface RecordedResult {
  applied: boolean;
  state: ClaimState | null;
  step: number;
}

export interface ResultOptions {
  /** How long evidence may come for an uncertain outcome. */
  evidenceWindowMs: number;
  /** Under `onUncertain: resend`: not before the claim's deadline + this. */
  resendAfterMs: number;
}

// ---------------------------------------------------------------------------------------------------------------------------
// Evidence

export interface EvidenceItem {
  occurrenceId: Buffer;
  /** 0: the evidence names no attempt and counts for the latest. */
  attempt: number;
  kind: 'sent' | 'delivered' | 'read' | 'failed' | 'held' | 'played';
  providerAt: number;
  providerMessageId: string | null;
  code: string | null;
  providerCode: string | null;
  text: string | null;
}

// ---------------------------------------------------------------------------------------------------------------------------
// Waiting rows

export interface WaitingItem extends DueItem {
  /** 0: it has no claim yet. */
  attempt: number;
  reason: WaitReason | 'not_yet';
  since: number;
  wakeAt: number;
  givesUpAt: number;
}

export interface NumberState {
  numberId: string;
  holdReason: 'account' | 'circuit' | 'template' | null;
  holdSince: number | null;
  /** null: until somebody ends it. */
  holdUntil: number | null;
  holdDetail: string | null;
  /** null: nothing learned, the configured rate holds. */
  learnedRate: number | null;
}

export interface SuppressionEntry {
  tenantId: string;
  channel: 'whatsapp' | 'sms';
  /** `*`: every category. */
  category: string;
  recipientHash: Buffer;
  reason: string;
}

export interface Swept {
  /** sending -> uncertain, or settled by evidence that was there already */
  overdue: number;
  /** uncertain -> unconfirmed */
  unconfirmed: number;
}

// ---------------------------------------------------------------------------------------------------------------------------

/** `new PostgresGate(database)` in gate.ts is this. Deadlocks and full lock tables are tried again inside. */
export interface GatePort {
  /** Verdicts in the order of the items. The same occurrence twice in one call: the second is a duplicate. */
  decide(items: readonly DueItem[], options: DecideOptions): Promise<Verdict[]>;
  /** In the order of the items. Recording the same result again changes nothing. */
  recordResults(items: readonly AttemptResult[], options: ResultOptions): Promise<RecordedResult[]>;
  /** How many claims were settled. Storing the same evidence again changes nothing. */
  recordEvidence(items: readonly EvidenceItem[]): Promise<number>;

  /** One step of the deadline sweeper; call again at once while it answers `limit` (default 200) of something. Several instances at once are safe. */
  sweepDeadlines(options: ResultOptions & { graceMs: number; limit?: number }): Promise<Swept>;
  /** Ends waiting rows whose validity or hold has ended and that no lane took. Answers how many. */
  sweepWaiting(options?: { limit?: number }): Promise<number>;

  /**
   * Waiting rows that are due, most urgent first, at most `free` for each number. They stay in the table, leased for `leaseMs`
   * (15 s by default), until the gate has answered; after the lease they are handed out again.
   */
  takeWaiting(numbers: ReadonlyArray<{ numberId: string; free: number }>, options?: { leaseMs?: number }): Promise<WaitingItem[]>;
  /** Ends the lease of rows that were dropped unsent (partition revoked, drain). */
  releaseWaiting(occurrenceIds: readonly Buffer[]): Promise<void>;
  /** Milliseconds until the next waiting row of these numbers is due (0: now); null: none waits. */
  nextWakeInMs(numberIds: readonly string[]): Promise<number | null>;

  /** A record that can't be decoded, or has no place: kept with key, bytes and reason. */
  parkRecord(record: { key: Buffer | null; value: Buffer; reason: string }): Promise<void>;

  /** Messages of a held number wait with this reason. `until` null: until it is ended (new credentials, a health probe). */
  holdNumber(hold: {
    numberId: string;
    reason: 'account' | 'circuit' | 'template';
    until: number | null;
    detail: string | null;
  }): Promise<void>;
  endNumberHold(numberId: string): Promise<void>;
  setLearnedRate(numberId: string, ratePerSecond: number | null): Promise<void>;
  /** What is known of these numbers; numbers without anything are left out. */
  readNumbers(numberIds: readonly string[]): Promise<NumberState[]>;

  holdTemplate(hold: { templateKey: string; until: number | null; detail: string | null }): Promise<void>;
  endTemplateHold(templateKey: string): Promise<void>;

  addSuppressions(entries: readonly SuppressionEntry[]): Promise<void>;

  /** Creates the partitions of this week and, a day or more before it begins, the next; call at start and once a day. */
  ensureClaimPartitions(daysAhead?: number): Promise<void>;
}

/** A template of one provider account, in one language. */
export function templateKey(account: string, name: string, language: string): string {
  return `${account}/${name}/${language}`;
}
