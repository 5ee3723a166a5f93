import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { PunctualError } from '#runtime/errors';
import { silentLog, type Log } from '#runtime/log';

export interface SlotRequest {
  /** The provider identity: one budget per installation, whoever sends. */
  number: string;
  wanted: number;
  stepMs: number;
}

export interface SlotAnswer {
  /** From the arrival of the answer to the first slot; with no slot booked, how far the first free one is away. */
  offsetMs: number;
  count: number;
  /** As it was booked: whole microseconds. */
  stepMs: number;
}

/** Redis does not answer, or has just come back and is not known again yet: pace by the local clock meanwhile. */
export class SlotsUnavailableError extends PunctualError {
  constructor(cause?: unknown) {
    super('slots_unavailable', 'Redis does not answer; numbers are paced at half their rate by the local clock until it does.', {
      retriable: true,
      cause,
    });
  }
}

export interface SendSlots {
  /** One round trip for all numbers. Rejects with SlotsUnavailableError. */
  reserve(requests: readonly SlotRequest[], horizonMs: number): Promise<SlotAnswer[]>;
  /** Runs after a restart of Redis was noticed: what was reserved before is void. */
  onRestart(listener: () => void): void;
  readonly available: boolean;
  close(): Promise<void>;
}

export interface SendSlotsOptions {
  url: string;
  prefix: string;
  log?: Log;
  /** 250 ms if absent: longer than any answer of a healthy Redis, and short enough to notice a hanging one within a slot horizon. */
  answerTimeoutMs?: number;
  /** How long nothing is sent after a run of Redis that nobody knows has appeared; 2 s if absent. */
  restartPauseMs?: number;
}

const RESERVE = readFileSync(join(__dirname, 'reserve-send-slots.lua'), 'utf8');
const RESERVE_SHA = createHash('sha1').update(RESERVE).digest('hex');
const ADOPT = readFileSync(join(__dirname, 'adopt-run.lua'), 'utf8');

export function openSendSlots(options: SendSlotsOptions): SendSlots {
  return new RedisSendSlots(options);
}

class RedisSendSlots implements SendSlots {
  private readonly redis: Redis;
  private readonly log: Log;
  private readonly epochKey: string;
  private runId: string | null = null;
  private lastRunId: string | null = null;
  private adopting: Promise<void> | null = null;
  private adoptAgainAt = 0;
  private readonly listeners: Array<() => void> = [];
  private closed = false;

  constructor(private readonly options: SendSlotsOptions) {
    this.log = (options.log ?? silentLog).with({ part: 'send-slots' });
    // One hash slot for all keys, so that a cluster takes the scripts too.
    this.epochKey = `${options.prefix}{pace}:epoch`;
    this.redis = new Redis(options.url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: 1_000,
      retryStrategy: (attempt) => Math.min(50 * attempt, 500),
      connectionName: 'punctual-sender',
    });
    this.redis.on('ready', () => void this.adopt());
    this.redis.on('close', () => this.lose());
    let silencedUntil = 0;
    this.redis.on('error', (error) => {
      if (Date.now() < silencedUntil) return;
      silencedUntil = Date.now() + 10_000;
      this.log.warn('Redis does not answer; numbers are paced at half their rate by the local clock until it does', { error });
    });
  }

  get available(): boolean {
    return this.runId !== null;
  }

  onRestart(listener: () => void): void {
    this.listeners.push(listener);
  }

  async reserve(requests: readonly SlotRequest[], horizonMs: number): Promise<SlotAnswer[]> {
    const { runId } = this;
    if (runId === null) {
      void this.adopt();
      throw new SlotsUnavailableError();
    }
    const pipeline = this.redis.pipeline();
    const steps = requests.map(({ stepMs }) => Math.max(1, Math.ceil(stepMs * 1_000)));
    requests.forEach(({ number, wanted }, index) => {
      const key = `${this.options.prefix}{pace}:${number}`;
      pipeline.evalsha(RESERVE_SHA, 2, this.epochKey, key, runId, steps[index]!, Math.round(horizonMs * 1_000), wanted);
    });
    let replies;
    try {
      replies = await this.inTime(pipeline.exec());
    } catch (error) {
      this.lose();
      throw new SlotsUnavailableError(error);
    }
    const answers: SlotAnswer[] = [];
    for (const [index, [error, reply]] of (replies ?? []).entries()) {
      const [offset, count] = (reply ?? []) as [number?, number?];
      if (error || offset === undefined || count === undefined || offset < 0) {
        // A reply of -1, NOSCRIPT after a flush, a time-out: whichever it is, this run must be made known again.
        this.lose();
        throw new SlotsUnavailableError(error ?? undefined);
      }
      answers.push({ offsetMs: offset / 1_000, count, stepMs: steps[index]! / 1_000 });
    }
    if (answers.length !== requests.length) throw new SlotsUnavailableError();
    return answers;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.redis.disconnect();
    await this.adopting;
  }

  /**
   * Rejects when no answer comes in time. After a jam of our own event loop timers run before sockets are read, so an answer that
   * has long arrived would count as late: hence the extra turn.
   */
  private inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () => setImmediate(() => setImmediate(() => reject(new Error('no answer in time'))));
      const timer = setTimeout(late, this.options.answerTimeoutMs ?? 250);
      answer.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  private lose(): void {
    this.runId = null;
  }

  private adopt(): Promise<void> {
    if (this.runId !== null || this.closed || this.redis.status !== 'ready' || performance.now() < this.adoptAgainAt) {
      return Promise.resolve();
    }
    this.adoptAgainAt = performance.now() + 200;
    this.adopting ??= this.adoptRun().finally(() => (this.adopting = null));
    return this.adopting;
  }

  private async adoptRun(): Promise<void> {
    try {
      const runId = /^run_id:(\w+)/m.exec(await this.inTime(this.redis.info('server')))?.[1];
      if (runId === undefined) throw new Error('INFO names no run_id');
      await this.inTime(this.redis.script('LOAD', RESERVE));
      const pauseUs = (this.options.restartPauseMs ?? 2_000) * 1_000;
      const isNew = (await this.inTime(this.redis.eval(ADOPT, 1, this.epochKey, runId, pauseUs))) === 1;
      const changed = isNew || runId !== this.lastRunId;
      this.lastRunId = this.runId = runId;
      if (isNew) this.log.info('a new run of Redis: numbers start again in two seconds');
      if (changed) for (const listener of this.listeners) listener();
    } catch (error) {
      if (!this.closed) this.log.debug('Redis can not be made use of yet; trying again', { error });
    }
  }
}
