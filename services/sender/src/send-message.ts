import { SpanKind, TraceFlags, type Span } from '@opentelemetry/api';
import { attemptToken } from '#contracts/attempt-token';
import type { Clock } from '#runtime/clock';
import { scrub } from '#runtime/scrub';
import { formatTraceparent, parseTraceparent, startChild } from '#runtime/trace-context';
import type { ClaimedMessage, LaneMessage } from './lane/lane-message';
import type { LaneHold, NumberLane } from './lane/number-lane';
import type { SendingNumber } from './numbers/number-directory';
import { decideOutcome, type Decision, type Outcome } from './outcome/decide-outcome';
import type { AttemptResult } from './postgres/gate-port';
import { GIVEN_UP } from './providers/answer';
import type { ProviderAdapter, SendOutcome } from './providers/provider';
import { senderMetrics } from './sender-metrics';

/** A call that got no connection by then is given up: its slot is gone, and the connection serves the next one. */
const WRITE_WITHIN_MS = 250;

export interface SendMessageOptions {
  clock: Clock;
  tokenKey: Buffer;
  random(): number;
  /** Monotonic milliseconds of the last heartbeat that the group took. */
  lastHeartbeatMs(): number;
  deadlineMs: number;
  /** Session time-out less a second: within it nobody else can have the partition. */
  heartbeatFreshMs: number;
  record(result: AttemptResult): void;
  /** What follows for others than this message. */
  onDecision(sent: { lane: NumberLane; number: SendingNumber; message: LaneMessage; decision: Decision }): void;
  repetitionOf(numberId: string): number;
  onDone(lane: NumberLane, callMs: number | null): void;
}

/** From a claim and its slot to a recorded result: the only place that calls providers. */
export class SendMessage {
  private draining = false;
  private readonly out = new Set<ClaimedMessage>();

  constructor(private readonly options: SendMessageOptions) {}

  get inFlight(): number {
    return this.out.size;
  }

  isInFlight(occurrenceId: Buffer): boolean {
    for (const { message } of this.out) if (message.item.occurrenceId.equals(occurrenceId)) return true;
    return false;
  }

  drain(): void {
    this.draining = true;
  }

  /** The claim's message is not sent, for a reason of ours: known not sent, without using up a retry. */
  notSent({ message, claim }: ClaimedMessage, why: string, hold: LaneHold | null = null): void {
    const now = this.options.clock.nowMs();
    senderMetrics.notPermitted.add(1, { why });
    const base = this.base(message, claim.attempt, null, now, null);
    if (hold === null) this.options.record({ ...base, outcome: 'not_sent', text: why, nextAttemptAt: now });
    else {
      const nextAttemptAt = hold.until ?? now;
      this.options.record({
        ...base,
        outcome: 'retry',
        code: 'not_sent',
        text: why,
        nextAttemptAt,
        usesRetry: false,
        waitReason: hold.reason,
      });
    }
  }

  /** A call that the lane's pace has let set out. Resolves when the result is handed over for recording; never rejects. */
  async send(lane: NumberLane, number: SendingNumber, claimed: ClaimedMessage, adapter: ProviderAdapter): Promise<void> {
    const { clock } = this.options;
    const { message, claim, deadlineAt } = claimed;
    const { accessToken } = number;
    if (accessToken === null) {
      lane.pace.giveUp();
      this.notSent(claimed, 'no_credentials');
      return;
    }
    if (claimed.body === undefined) {
      const token = attemptToken(this.options.tokenKey, message.item.occurrenceId, claim.attempt);
      const built = adapter.build(message.found.content.content, message.found.recipient, token);
      if (!built.ok) {
        lane.pace.giveUp();
        this.missingParameters(claimed, built.missing);
        return;
      }
      claimed.body = built.body;
    }

    lane.inFlight++;
    this.out.add(claimed);
    let asked = false;
    let calledAt: number | null = null;
    let written: number | null = null;
    const { ownership } = lane;
    const refuse = (why: string) => {
      lane.pace.giveUp();
      senderMetrics.notPermitted.add(1, { why });
      return false;
    };
    const mayWrite = (): boolean => {
      asked = true;
      const now = clock.monotonicMs();
      if (now >= deadlineAt) return refuse('claim_deadline');
      if (now - this.options.lastHeartbeatMs() > this.options.heartbeatFreshMs) return refuse('heartbeat_too_old');
      if (lane.ownership !== ownership || lane.block === 'not_owned' || this.draining) return refuse('not_ours');
      written = lane.pace.write(now);
      if (written === null) return this.noSlot();
      calledAt = clock.nowMs();
      return true;
    };
    const span = this.startSpan(message, claim.attempt);
    const outcome = await adapter.send({
      number: { numberId: number.numberId, mode: number.mode, providerNumberId: number.providerNumberId, accessToken },
      body: claimed.body,
      deadlineAt,
      writeBy: clock.monotonicMs() + WRITE_WITHIN_MS,
      mayWrite,
    });
    if (!asked) lane.pace.giveUp();
    if (written !== null && outcome.answer.class !== 'unknown') lane.pace.answered(written, outcome.answeredAt);
    lane.inFlight--;
    this.out.delete(claimed);
    if (this.mayTryAgain(lane, ownership, claimed, outcome)) {
      span?.end();
      lane.ready.unshiftAll([claimed]);
    } else this.finish(lane, number, claimed, outcome, calledAt, span);
    this.options.onDone(lane, outcome.writtenAt === null ? null : outcome.answeredAt - outcome.writtenAt);
  }

  /**
   * A slot was missed by a busy moment of ours, and nothing was written: the claim stands and meets the next slot. Recording it as
   * not sent would cost three round trips and another attempt for the same effect.
   */
  private mayTryAgain(
    lane: NumberLane,
    ownership: number,
    { deadlineAt }: ClaimedMessage,
    { answer, writtenAt }: SendOutcome,
  ): boolean {
    if (writtenAt !== null || answer.class !== 'not_sent' || !GIVEN_UP.has(answer.providerCode ?? '')) return false;
    const left = deadlineAt - this.options.clock.monotonicMs();
    return left > this.options.deadlineMs / 2 && lane.ownership === ownership && lane.block === null && !this.draining;
  }

  private noSlot(): false {
    senderMetrics.notPermitted.add(1, { why: 'no_slot' });
    return false;
  }

  private finish(
    lane: NumberLane,
    number: SendingNumber,
    { message, claim }: ClaimedMessage,
    { answer, writtenAt, answeredAt }: SendOutcome,
    calledAt: number | null,
    span: Span | null,
  ): void {
    const now = this.options.clock.nowMs();
    senderMetrics.sends.add(1, { class: answer.class });
    const providerMs = writtenAt === null ? null : answeredAt - writtenAt;
    if (providerMs !== null) senderMetrics.providerSeconds.record(providerMs / 1_000);
    if (calledAt !== null && claim.attempt === 1)
      senderMetrics.lagSeconds.record(Math.max(0, calledAt - message.item.dueAt) / 1_000);

    // Our own checks say nothing about the host, and such a message may go at once.
    const ours = answer.class === 'not_sent' && GIVEN_UP.has(answer.providerCode ?? '');
    const decision = decideOutcome(answer, {
      attempt: ours ? 1 : claim.attempt,
      retriesUsed: claim.retriesUsed,
      retryDelaysMs: claim.retryDelaysMs,
      now,
      random: this.options.random(),
      repetition: this.options.repetitionOf(lane.numberId),
    });
    const result = this.resultOf(decision.outcome, this.base(message, claim.attempt, calledAt, now, providerMs, span), ours);
    this.options.record(result);
    if (span) {
      span.setAttribute('punctual.outcome', decision.outcome.kind);
      span.setAttribute('punctual.class', answer.class);
      span.end();
    }
    this.options.onDecision({ lane, number, message, decision });
  }

  private missingParameters({ message, claim }: ClaimedMessage, missing: readonly string[]): void {
    this.options.record({
      ...this.base(message, claim.attempt, null, this.options.clock.nowMs(), null),
      outcome: 'failed',
      code: 'template_parameters',
      text: `the recipient has no value for ${missing.join(', ')}`,
      reachedProvider: false,
    });
  }

  private base(
    message: LaneMessage,
    attempt: number,
    calledAt: number | null,
    endedAt: number,
    providerMs: number | null,
    span?: Span | null,
  ) {
    const context = span?.spanContext();
    const traceparent = context ? formatTraceparent(context) : message.traceparent;
    return {
      occurrenceId: message.item.occurrenceId,
      attempt,
      calledAt,
      endedAt,
      waits: waitsOf(message, calledAt ?? endedAt, providerMs),
      traceId: context?.traceId ?? null,
      traceparent,
    };
  }

  private resultOf(outcome: Outcome, base: ReturnType<SendMessage['base']>, ours: boolean): AttemptResult {
    const text = 'text' in outcome && outcome.text !== null ? scrub(outcome.text) : null;
    switch (outcome.kind) {
      case 'accepted': {
        const { providerMessageId, providerStatus } = outcome;
        return { ...base, outcome: 'accepted', providerMessageId, providerStatus };
      }
      case 'failed': {
        const { code, providerCode, reachedProvider } = outcome;
        return { ...base, outcome: 'failed', code, providerCode, text, reachedProvider };
      }
      case 'retry': {
        const { code, providerCode, nextAttemptAt, usesRetry, waitReason } = outcome;
        return {
          ...base,
          outcome: 'retry',
          code,
          providerCode,
          text,
          nextAttemptAt: Math.ceil(nextAttemptAt),
          usesRetry,
          waitReason,
        };
      }
      case 'not_sent':
        return { ...base, outcome: 'not_sent', text, nextAttemptAt: ours ? base.endedAt : Math.ceil(outcome.nextAttemptAt) };
      case 'uncertain':
        return { ...base, outcome: 'uncertain', reason: outcome.reason, text };
      default:
        return outcome satisfies never;
    }
  }

  /** Sampled messages only: a span for each of thousands a second would cost more than sending them. */
  private startSpan(message: LaneMessage, attempt: number): Span | null {
    const parent = parseTraceparent(message.traceparent);
    if (!parent || !(parent.traceFlags & TraceFlags.SAMPLED)) return null;
    const attributes = { 'punctual.occurrence_id': message.item.occurrenceId.toString('hex'), 'punctual.attempt': attempt };
    return startChild('send message', message.traceparent ?? undefined, attributes, SpanKind.CLIENT);
  }
}

/** Where the time went between the due time and now, in whole milliseconds. */
export function waitsOf(
  message: LaneMessage,
  calledAt: number,
  providerMs: number | null,
): Array<{ reason: string; ms: number }> {
  const { origin, receivedAt, item } = message;
  const waits = [
    origin.from === 'kafka'
      ? { reason: 'admission', ms: receivedAt - item.dueAt }
      : { reason: origin.reason === 'not_yet' ? 'admission' : origin.reason, ms: receivedAt - origin.since },
    { reason: 'pace', ms: calledAt - receivedAt },
  ];
  if (providerMs !== null) waits.push({ reason: 'provider', ms: providerMs });
  return waits.map(({ reason, ms }) => ({ reason, ms: Math.round(ms) })).filter(({ ms }) => ms > 0);
}
