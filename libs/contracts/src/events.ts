// Generated from libs/contracts/schemas by scripts/generate-event-types.mjs; change the schemas, not this file.
// Instants are milliseconds since the epoch.
/** 20 bytes. */
export type OccurrenceId = Buffer;

/** 16 bytes. */
export type ScheduleId = Buffer;

/** 16 bytes. */
export type NumberId = Buffer;

/** One message became due and was handed to the sender of its number. */
export interface ExecutionDue {
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  revision: number;
  numberId: NumberId;
  dueAt: number;
  releasedAt: number;
  validUntil: null | number;
  priority: number;
  /** of the recipient in the audience: chunk * 500 + index. */
  position: number;
}

/** 16 bytes. */
export type TenantId = Buffer;

/** Tried and rejected for good. */
export interface MessageFailed {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  attempt: number;
  /** ours, stable. */
  code: string;
  providerCode: null | string;
  text: null | string;
  reachedProvider: boolean;
  traceparent: null | string;
}

/** Due, and waits for a reason that ends. */
export interface MessageHeld {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  reason: string;
  since: number;
  until: null | number;
  givesUpAt: number;
}

export type RefusedStatus = 'refused' | 'cancelled' | 'expired';

/** Never sent (or, after an uncertain attempt, not sent again), with the reason. */
export interface MessageRefused {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  status: RefusedStatus;
  reason: string;
  afterUncertain: boolean;
  traceparent: null | string;
}

export type Channel = 'unknown' | 'whatsapp' | 'sms';

export type Mode = 'unknown' | 'test' | 'live';

export type ReachedProvider = 'no' | 'maybe' | 'yes';

export interface Evidence {
  sentAt: null | number;
  deliveredAt: null | number;
  readAt: null | number;
  failedAt: null | number;
}

export interface WaitingFor {
  reason: string;
  since: number;
  until: null | number;
  givesUpAt: null | number;
}

export interface MessageError {
  code: string;
  retryable: boolean;
  text: string;
  providerCode: null | string;
  at: number;
}

/** The whole state of a message after a change; keep the highest sequence per message. */
export interface MessageStatusChanged {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  sequence: number;
  tenantId: string;
  messageId: string;
  scheduleId: string;
  externalId: null | string;
  runId: string;
  slot: string;
  revision: number;
  ref: null | string;
  /** masked. */
  to: null | string;
  channel: Channel;
  labels: Record<string, string>;
  mode: Mode;
  status: string;
  previousStatus: null | string;
  reason: null | string;
  final: boolean;
  reachedProvider: ReachedProvider;
  correction: boolean;
  dueAt: number;
  submittedAt: null | number;
  evidence: Evidence;
  attempts: number;
  waitingFor: null | WaitingFor;
  error: null | MessageError;
}

export type ProviderStatus = 'accepted' | 'held';

export interface Wait {
  reason: string;
  ms: number;
}

export type SubmittedBy = 'answer' | 'evidence';

/** The provider accepted the message. */
export interface MessageSubmitted {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  attempt: number;
  providerMessageId: null | string;
  providerStatus: ProviderStatus;
  /** when the request was written to the socket. */
  calledAt: number;
  /** when the answer came. */
  submittedAt: number;
  /** where the time since due went. */
  waits: Array<Wait>;
  by: SubmittedBy;
  traceparent: null | string;
}

/** The provider may or may not have it; evidence decides. */
export interface OutcomeUncertain {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  attempt: number;
  reason: string;
  since: number;
  /** end of the evidence window. */
  until: number;
  traceparent: null | string;
}

/** The evidence window ended without evidence. */
export interface OutcomeUnconfirmed {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  attempt: number;
}

export type ReceiptKind = 'unknown' | 'sent' | 'delivered' | 'read' | 'failed' | 'held' | 'played';

/** Evidence from a provider about an attempt. */
export interface ReceiptRecorded {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  /** 0 when only the provider id named the message. */
  attempt: number;
  kind: ReceiptKind;
  providerAt: number;
  providerMessageId: null | string;
  /** ours. */
  code: null | string;
  providerCode: null | string;
  text: null | string;
}

/** 12 bytes. */
export type RunId = Buffer;

export type RangeStatus = 'refused' | 'cancelled' | 'expired' | 'failed';

/** A range of recipients that were never released is final; anything known of a single message outranks it. */
export interface RecipientsRefused {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  runId: RunId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  fromPosition: number;
  /** exclusive. */
  untilPosition: number;
  count: number;
  status: RangeStatus;
  reason: string;
}

/** No message of the run can still be sent; told again with correction when evidence changes the outcome. */
export interface RunCompleted {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  sequence: number;
  tenantId: string;
  runId: string;
  scheduleId: string;
  externalId: null | string;
  slot: string;
  labels: Record<string, string>;
  mode: Mode;
  status: string;
  total: number;
  counts: Record<string, number>;
  outcome: string;
  correction: boolean;
  completedAt: number;
}

/** A run waits because its messages can only fail, or its number or template cannot be used. */
export interface RunHeld {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  runId: RunId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  reason: string;
  since: number;
  detail: null | string;
}

/** All messages of one schedule for one slot are known. */
export interface RunPlanned {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  runId: RunId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  externalId: null | string;
  numberId: NumberId;
  slot: string;
  revision: number;
  total: number;
  dueAt: number;
  validUntil: null | number;
  mode: Mode;
  channel: Channel;
  labels: Record<string, string>;
  correlationId: string;
  traceparent: null | string;
}

/** Counts of a run moved. */
export interface RunProgressed {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  sequence: number;
  tenantId: string;
  runId: string;
  scheduleId: string;
  externalId: null | string;
  slot: string;
  labels: Record<string, string>;
  mode: Mode;
  status: string;
  total: number;
  counts: Record<string, number>;
}

/** Every recipient of the run was handed over or refused. */
export interface RunReleased {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  runId: RunId;
  scheduleId: ScheduleId;
  revision: number;
  released: number;
}

/** No further message may start, for good. */
export interface ScheduleCancelled {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  version: number;
  revision: number;
  actor: string;
  reason: null | string;
  correlationId: string;
  traceparent: null | string;
}

/** A schedule waits for somebody: what for, and since when. */
export interface ScheduleHeld {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  sequence: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  runId: null | string;
  reason: string;
  since: number;
  detail: null | string;
}

/** The wait is over. */
export interface ScheduleHoldEnded {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  sequence: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  runId: null | string;
  reason: string;
}

/** No further message may start until resumed. */
export interface SchedulePaused {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  version: number;
  revision: number;
  actor: string;
  reason: null | string;
  correlationId: string;
  traceparent: null | string;
}

export type OnUncertain = 'leave' | 'resend';

export type ResolutionRule = 'unknown' | 'exact' | 'gap_shift' | 'fold_first' | 'fold_second' | 'offset' | 'now';

export interface Slot {
  /** once, or the local date of a recurrence. */
  slot: string;
  runId: string;
  /** IANA name that was asked for. */
  timeZone: string;
  /** the wall-clock time that was asked for, without offset; never rewritten. */
  local: string;
  rule: ResolutionRule;
  tzdb: string;
  dueAt: number;
  /** after this instant it is too late; null: never. */
  validUntil: null | number;
}

/** A customer asked for messages; accepted and stored. */
export interface ScheduleRequested {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  /** of the stream. */
  version: number;
  /** rises with time, content or audience only. */
  revision: number;
  mode: Mode;
  channel: Channel;
  numberId: string;
  /** what pace, lane and partition follow; one per installation. */
  providerIdentity: string;
  category: null | string;
  /** 1 most urgent, 9 least. */
  priority: number;
  labels: Record<string, string>;
  onUncertain: OnUncertain;
  audienceId: string;
  chunkCount: number;
  recipients: number;
  slots: Array<Slot>;
  actor: string;
  correlationId: string;
  traceparent: null | string;
}

/** Messages may start again; also ends a hold of the run. */
export interface ScheduleResumed {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  version: number;
  revision: number;
  actor: string;
  reason: null | string;
  correlationId: string;
  traceparent: null | string;
}

/** Time, content or audience changed; unreleased messages follow the new revision. */
export interface ScheduleRevised {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  tenantId: string;
  scheduleId: string;
  externalId: null | string;
  /** of the stream. */
  version: number;
  /** rises with time, content or audience only. */
  revision: number;
  mode: Mode;
  channel: Channel;
  numberId: string;
  /** what pace, lane and partition follow; one per installation. */
  providerIdentity: string;
  category: null | string;
  /** 1 most urgent, 9 least. */
  priority: number;
  labels: Record<string, string>;
  onUncertain: OnUncertain;
  audienceId: string;
  chunkCount: number;
  recipients: number;
  slots: Array<Slot>;
  actor: string;
  correlationId: string;
  traceparent: null | string;
}

/** Known not sent; another attempt follows. */
export interface SendRetryPlanned {
  /** evt_ and base32; the same fact has the same id, however often it is told. */
  eventId: string;
  /** when we recorded it. */
  at: number;
  occurrenceId: OccurrenceId;
  scheduleId: ScheduleId;
  tenantId: TenantId;
  revision: number;
  position: number;
  /** of the claim: a higher step is later, whatever order the facts arrive in; 0 without a claim. */
  step: number;
  dueAt: number;
  attempt: number;
  /** ours, stable. */
  code: string;
  providerCode: null | string;
  text: null | string;
  nextAttemptAt: number;
  traceparent: null | string;
}

/** The raw body that a provider posted, after its signature was found right. */
export interface WebhookReceived {
  eventId: string;
  at: number;
  endpointId: string;
  provider: string;
  body: Buffer;
}

export interface Events {
  ExecutionDue: ExecutionDue;
  MessageFailed: MessageFailed;
  MessageHeld: MessageHeld;
  MessageRefused: MessageRefused;
  MessageStatusChanged: MessageStatusChanged;
  MessageSubmitted: MessageSubmitted;
  OutcomeUncertain: OutcomeUncertain;
  OutcomeUnconfirmed: OutcomeUnconfirmed;
  ReceiptRecorded: ReceiptRecorded;
  RecipientsRefused: RecipientsRefused;
  RunCompleted: RunCompleted;
  RunHeld: RunHeld;
  RunPlanned: RunPlanned;
  RunProgressed: RunProgressed;
  RunReleased: RunReleased;
  ScheduleCancelled: ScheduleCancelled;
  ScheduleHeld: ScheduleHeld;
  ScheduleHoldEnded: ScheduleHoldEnded;
  SchedulePaused: SchedulePaused;
  ScheduleRequested: ScheduleRequested;
  ScheduleResumed: ScheduleResumed;
  ScheduleRevised: ScheduleRevised;
  SendRetryPlanned: SendRetryPlanned;
  WebhookReceived: WebhookReceived;
}

export type EventName = keyof Events;

/** An event with its name: a closed union to switch over. */
export type AnyEvent = { [N in EventName]: { name: N; event: Events[N] } }[EventName];
