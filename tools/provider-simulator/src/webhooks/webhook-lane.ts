import { Pool } from 'undici';
import type { Subscription, WebhookBehaviour } from '../configuration';
import type { RandomSource } from '../timing/random';
import { DelayLoop } from '../timing/delay-loop';
import type { SimulatorClock } from '../timing/clock';
import { renderWebhook, signature256, wrongSignature256, type RenderedStatus } from './render-webhook';

export interface OutgoingStatus extends RenderedStatus {
  /** Called once: true when the receiver answered 200, false when the status was given up. */
  settle: (acknowledged: boolean) => void;
}

interface Batch {
  statuses: OutgoingStatus[];
  body: Buffer;
  attempts: number;
}

export interface LaneCounters {
  posts: number;
  postsAcknowledged: number;
  postsFailed: number;
  statusesAcknowledged: number;
  /** Statuses given up after the last attempt. */
  statusesAbandoned: number;
  /** Statuses that found the queue full. */
  statusesDiscarded: number;
  badSignatures: number;
  lastFailure: string | null;
}

function noCounts(): LaneCounters {
  return {
    posts: 0,
    postsAcknowledged: 0,
    postsFailed: 0,
    statusesAcknowledged: 0,
    statusesAbandoned: 0,
    statusesDiscarded: 0,
    badSignatures: 0,
    lastFailure: null,
  };
}

/** Statuses waiting for one receiver; above this they are discarded and counted. About 500 bytes each. */
const MAX_WAITING = 500_000;

/** Posts statuses to one subscription: batched, at most `concurrency` at a time, repeated until 200 or given up. */
export class WebhookLane {
  counters = noCounts();
  #pool: Pool;
  readonly #target: URL;
  #pending: OutgoingStatus[] = [];
  #pendingSinceMs = 0;
  #ready: Batch[] = [];
  readonly #later: DelayLoop<Batch | 'look again'>;
  #inRetry = 0;
  #inFlight = 0;
  #paused = false;
  #stopped = false;
  #forcedBadSignatures = 0;
  #idle: (() => void)[] = [];

  constructor(
    readonly subscription: Subscription,
    private behaviour: WebhookBehaviour,
    private readonly random: RandomSource,
    clock: SimulatorClock,
  ) {
    this.#target = new URL(subscription.url);
    this.#pool = this.#openPool();
    this.#later = new DelayLoop(clock, (item) => {
      if (item === 'look again') return this.pump();
      this.#inRetry -= item.statuses.length;
      this.#ready.push(item);
      this.pump();
    });
  }

  /** Statuses not yet answered 200. */
  get waiting(): number {
    return this.#pending.length + this.#inRetry + this.#ready.reduce((sum, batch) => sum + batch.statuses.length, 0);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  add(status: OutgoingStatus): void {
    if (this.#stopped || this.#pending.length + this.#inRetry >= MAX_WAITING) {
      this.counters.statusesDiscarded += 1;
      status.settle(false);
      return;
    }
    if (this.#pending.length === 0) {
      this.#pendingSinceMs = this.#later.nowMs();
      if (this.behaviour.batchWaitMs > 0) this.#later.schedule(this.#pendingSinceMs + this.behaviour.batchWaitMs, 'look again');
    }
    this.#pending.push(status);
    if (this.#pending.length >= this.behaviour.batchSize || this.behaviour.batchWaitMs === 0) this.pump();
  }

  /** Posts one status now and alone, past batches and concurrency. */
  addUrgent(status: OutgoingStatus): void {
    if (this.#stopped) return status.settle(false);
    void this.#post(this.#batch([status]));
  }

  /** Starts what may start now. */
  pump(): void {
    if (this.#paused || this.#stopped) return;
    while (this.#inFlight < this.behaviour.concurrency) {
      const batch = this.#ready.shift() ?? this.#nextBatch();
      if (!batch) break;
      void this.#post(batch);
    }
    if (this.waiting === 0 && this.#inFlight === 0) this.#idle.splice(0).forEach((resolve) => resolve());
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.pump();
  }

  sendBadSignatures(count: number): void {
    this.#forcedBadSignatures += count;
  }

  async reconfigure(behaviour: WebhookBehaviour): Promise<void> {
    const before = this.behaviour;
    this.behaviour = behaviour;
    if (before.concurrency !== behaviour.concurrency || before.timeoutMs !== behaviour.timeoutMs) {
      const old = this.#pool;
      this.#pool = this.#openPool();
      await old.close();
    }
  }

  /** Posts what waits without waiting for company or for the next attempt's time. Resolves when everything is settled. */
  flush(): Promise<void> {
    for (const item of this.#later.takeAll()) {
      if (item === 'look again') continue;
      this.#inRetry -= item.statuses.length;
      this.#ready.push(item);
    }
    this.#pendingSinceMs = Number.NEGATIVE_INFINITY;
    const idle = new Promise<void>((resolve) => this.#idle.push(resolve));
    this.pump();
    return idle;
  }

  /** Forgets what waits and what was counted. */
  clear(): void {
    this.counters = noCounts();
    this.#later.takeAll();
    this.#pending = [];
    this.#ready = [];
    this.#inRetry = 0;
    this.pump();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#later.stop();
    this.#idle.splice(0).forEach((resolve) => resolve());
    await this.#pool.destroy();
  }

  #openPool(): Pool {
    const { concurrency, timeoutMs } = this.behaviour;
    // Idle sockets go before the usual five seconds of a receiver's keep-alive end, or posts would meet a closing socket.
    return new Pool(this.#target.origin, {
      connections: concurrency,
      pipelining: 1,
      keepAliveTimeout: 4000,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  #nextBatch(): Batch | undefined {
    const ripe =
      this.#pending.length >= this.behaviour.batchSize ||
      (this.#pending.length > 0 && this.#later.nowMs() >= this.#pendingSinceMs + this.behaviour.batchWaitMs);
    if (!ripe) return undefined;
    return this.#batch(this.#pending.splice(0, this.behaviour.batchSize));
  }

  #batch(statuses: OutgoingStatus[]): Batch {
    return { statuses, body: Buffer.from(renderWebhook(statuses, this.behaviour.batchShape), 'latin1'), attempts: 0 };
  }

  async #post(batch: Batch): Promise<void> {
    this.#inFlight += 1;
    this.counters.posts += 1;
    batch.attempts += 1;
    const failure = await this.#tryPost(batch);
    this.#inFlight -= 1;
    if (failure === undefined) {
      this.counters.postsAcknowledged += 1;
      this.counters.statusesAcknowledged += batch.statuses.length;
      for (const status of batch.statuses) status.settle(true);
    } else {
      this.counters.postsFailed += 1;
      this.counters.lastFailure = failure;
      this.#retry(batch);
    }
    this.pump();
  }

  async #tryPost(batch: Batch): Promise<string | undefined> {
    const bad =
      this.#forcedBadSignatures > 0 || (this.behaviour.badSignatureShare > 0 && this.random() < this.behaviour.badSignatureShare);
    if (this.#forcedBadSignatures > 0) this.#forcedBadSignatures -= 1;
    if (bad) this.counters.badSignatures += 1;
    const { appSecret } = this.subscription;
    try {
      const answer = await this.#pool.request({
        method: 'POST',
        path: this.#target.pathname + this.#target.search,
        headers: {
          'content-type': 'application/json',
          accept: '*/*',
          'user-agent': 'facebookexternalua',
          'x-hub-signature-256': bad ? wrongSignature256(appSecret, batch.body) : signature256(appSecret, batch.body),
        },
        body: batch.body,
      });
      await answer.body.dump();
      return answer.statusCode === 200 ? undefined : `HTTP ${answer.statusCode}`;
    } catch (error) {
      return error instanceof Error ? error.message || error.name : String(error);
    }
  }

  #retry(batch: Batch): void {
    if (this.#stopped || batch.attempts >= this.behaviour.maxAttempts) {
      this.counters.statusesAbandoned += batch.statuses.length;
      for (const status of batch.statuses) status.settle(false);
      return;
    }
    const delays = this.behaviour.retryDelaysMs;
    this.#inRetry += batch.statuses.length;
    this.#later.schedule(this.#later.nowMs() + delays[Math.min(batch.attempts, delays.length) - 1]!, batch);
  }
}
