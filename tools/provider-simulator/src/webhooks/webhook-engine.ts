import type { Subscription, WebhookBehaviour } from '../configuration';
import type { JourneyStep } from '../rules/actions';
import type { SimulatorClock } from '../timing/clock';
import { DelayLoop } from '../timing/delay-loop';
import { latencySampler, type LatencySampler } from '../timing/latency';
import type { RandomSource } from '../timing/random';
import { renderContact, renderStatus, type NumberIdentity } from './render-webhook';
import type { StatusName } from './status-names';
import { WebhookLane, type LaneCounters, type OutgoingStatus } from './webhook-lane';

export interface TravellingMessage {
  sequence: number;
  messageId: string;
  recipient: string;
  isUserId: boolean;
  token: string;
  category: string;
  number: NumberIdentity;
  subscription: Subscription;
  journey: readonly JourneyStep[];
  copies: number;
}

type Waiting =
  { kind: 'step'; message: TravellingMessage; index: number } | { kind: 'held back'; lane: WebhookLane; status: OutgoingStatus };

/** Messages between two statuses; above this new ones get no webhooks and are counted. About 400 bytes each. */
const MAX_TRAVELLING = 1_000_000;

export interface WebhookSummary extends LaneCounters {
  paused: boolean;
  /** Messages whose next status is not due yet. */
  travelling: number;
  messagesWithoutRoom: number;
  statusesEmitted: Record<StatusName, number>;
  waiting: number;
  inFlight: number;
}

/** Takes accepted messages through their statuses and hands each to the lane of its subscription. */
export class WebhookEngine {
  readonly #loop: DelayLoop<Waiting>;
  readonly #lanes = new Map<string, WebhookLane>();
  #delays!: Record<'sent' | 'delivered' | 'read' | 'failed' | 'held', LatencySampler>;
  #reorderDelay!: LatencySampler;
  #emitted: Record<StatusName, number> = { sent: 0, delivered: 0, read: 0, failed: 0 };
  #withoutRoom = 0;
  #paused = false;
  #generation = 0;

  constructor(
    private behaviour: WebhookBehaviour,
    private readonly clock: SimulatorClock,
    private readonly random: RandomSource,
    private readonly onAcknowledged: (sequence: number, status: StatusName) => void,
  ) {
    this.#loop = new DelayLoop(clock, (waiting) => this.#run(waiting));
    this.#compile();
  }

  /** Sends a message on its way. */
  start(message: TravellingMessage): void {
    if (message.journey.length === 0) return;
    if (this.#loop.size >= MAX_TRAVELLING) {
      this.#withoutRoom += 1;
      return;
    }
    this.#scheduleStep(message, 0);
  }

  /** Posts the first status now, calls back when it is answered (or can't be), and goes on with the others. */
  startWithWebhookFirst(message: TravellingMessage, afterwards: () => void): void {
    const first = message.journey[0];
    if (!first || this.#paused) {
      this.start(message);
      return afterwards();
    }
    this.#lane(message.subscription).addUrgent(this.#render(message, first, afterwards));
    this.#scheduleStep(message, 1);
  }

  /** One status outside any journey. */
  emit(message: TravellingMessage, step: JourneyStep): void {
    this.#lane(message.subscription).add(this.#render(message, step));
  }

  async reconfigure(behaviour: WebhookBehaviour): Promise<void> {
    this.behaviour = behaviour;
    this.#compile();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.reconfigure(behaviour)));
  }

  pause(): void {
    this.#paused = true;
    for (const lane of this.#lanes.values()) lane.pause();
  }

  resume(): void {
    this.#paused = false;
    for (const lane of this.#lanes.values()) lane.resume();
  }

  sendBadSignatures(count: number): void {
    for (const lane of this.#lanes.values()) lane.sendBadSignatures(count);
  }

  /** Lets every journey happen at once and waits until its webhooks are answered or given up. False when `deadlineMs` came first. */
  async flush(deadlineMs: number): Promise<boolean> {
    for (let due = this.#loop.takeAll(); due.length > 0; due = this.#loop.takeAll()) {
      for (const waiting of due) this.#run(waiting);
    }
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), deadlineMs);
    });
    const drained = Promise.all([...this.#lanes.values()].map((lane) => lane.flush())).then(() => true);
    const outcome = await Promise.race([drained, deadline]);
    clearTimeout(timer);
    return outcome;
  }

  /** Forgets everything on its way. */
  clear(): void {
    this.#generation += 1;
    this.#loop.takeAll();
    for (const lane of this.#lanes.values()) lane.clear();
    this.#emitted = { sent: 0, delivered: 0, read: 0, failed: 0 };
    this.#withoutRoom = 0;
  }

  summary(): WebhookSummary {
    const lanes = [...this.#lanes.values()];
    const sum = (pick: (lane: WebhookLane) => number): number => lanes.reduce((total, lane) => total + pick(lane), 0);
    return {
      paused: this.#paused,
      travelling: this.#loop.size,
      messagesWithoutRoom: this.#withoutRoom,
      statusesEmitted: { ...this.#emitted },
      waiting: sum((lane) => lane.waiting),
      inFlight: sum((lane) => lane.inFlight),
      posts: sum((lane) => lane.counters.posts),
      postsAcknowledged: sum((lane) => lane.counters.postsAcknowledged),
      postsFailed: sum((lane) => lane.counters.postsFailed),
      statusesAcknowledged: sum((lane) => lane.counters.statusesAcknowledged),
      statusesAbandoned: sum((lane) => lane.counters.statusesAbandoned),
      statusesDiscarded: sum((lane) => lane.counters.statusesDiscarded),
      badSignatures: sum((lane) => lane.counters.badSignatures),
      lastFailure: lanes.map((lane) => lane.counters.lastFailure).find((failure) => failure !== null) ?? null,
    };
  }

  async stop(): Promise<void> {
    this.#loop.stop();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()));
  }

  #compile(): void {
    const { delays, reorderDelay } = this.behaviour;
    this.#delays = {
      sent: latencySampler(delays.sent, this.random),
      delivered: latencySampler(delays.delivered, this.random),
      read: latencySampler(delays.read, this.random),
      failed: latencySampler(delays.failed, this.random),
      held: latencySampler(delays.held, this.random),
    };
    this.#reorderDelay = latencySampler(reorderDelay, this.random);
  }

  #scheduleStep(message: TravellingMessage, index: number): void {
    const step = message.journey[index];
    if (!step) return;
    const afterMs = typeof step.after === 'number' ? step.after : this.#delays[step.after]();
    this.#loop.schedule(this.#loop.nowMs() + afterMs, { kind: 'step', message, index });
  }

  #run(waiting: Waiting): void {
    switch (waiting.kind) {
      case 'held back':
        return waiting.lane.add(waiting.status);
      case 'step': {
        const { message, index } = waiting;
        const lane = this.#lane(message.subscription);
        for (let copy = 0; copy < message.copies; copy += 1) this.#hand(lane, message, message.journey[index]!);
        // A duplicate comes from a resend some time later, never in the same breath.
        if (this.behaviour.duplicateShare > 0 && this.random() < this.behaviour.duplicateShare) {
          this.#holdBack(lane, this.#render(message, message.journey[index]!));
        }
        return this.#scheduleStep(message, index + 1);
      }
      default:
        return waiting satisfies never;
    }
  }

  #hand(lane: WebhookLane, message: TravellingMessage, step: JourneyStep): void {
    const status = this.#render(message, step);
    if (this.behaviour.reorderShare > 0 && this.random() < this.behaviour.reorderShare) this.#holdBack(lane, status);
    else lane.add(status);
  }

  #holdBack(lane: WebhookLane, status: OutgoingStatus): void {
    this.#loop.schedule(this.#loop.nowMs() + this.#reorderDelay(), { kind: 'held back', lane, status });
  }

  #render(message: TravellingMessage, step: JourneyStep, afterwards?: () => void): OutgoingStatus {
    const { contacts, profileName, legacyConversation } = this.behaviour;
    const generation = this.#generation;
    this.#emitted[step.status] += 1;
    return {
      number: message.number,
      json: renderStatus({
        messageId: message.messageId,
        status: step.status,
        timestampSeconds: Math.floor(this.clock.wallMicros() / 1_000_000) + (step.timestampShiftSeconds ?? 0),
        recipient: message.recipient,
        isUserId: message.isUserId,
        token: message.token,
        category: message.category,
        failureCode: step.code,
        legacyConversation,
      }),
      contact: contacts && step.status !== 'failed' ? renderContact(message.recipient, message.isUserId, profileName) : undefined,
      settle: (acknowledged) => {
        if (acknowledged && generation === this.#generation) this.onAcknowledged(message.sequence, step.status);
        afterwards?.();
      },
    };
  }

  #lane(subscription: Subscription): WebhookLane {
    const key = `${subscription.url} ${subscription.appSecret}`;
    const known = this.#lanes.get(key);
    if (known) return known;
    const lane = new WebhookLane(subscription, this.behaviour, this.random, this.clock);
    if (this.#paused) lane.pause();
    this.#lanes.set(key, lane);
    return lane;
  }
}
