import type { Codec } from '#contracts/codec';
import { formatId, newUuid } from '#contracts/ids';
import type { Clock } from '#runtime/clock';
import type { BatchProducer, OutRecord } from '#runtime/kafka/port';
import type { Log } from '#runtime/log';
import { counter } from '#runtime/metrics';
import { pause } from '#runtime/pause';
import { METRICS } from '../metric-names';
import { headersOf, packBody } from '../webhooks/pack-body';
import type { WebhookNumber } from './webhook-secrets';
import type { SpooledWebhook, WebhookSpool } from './webhook-spool';

export interface IntakeOptions {
  codec: Codec;
  producer: BatchProducer;
  spool: WebhookSpool;
  clock: Clock;
  log: Log;
  topic: string;
  /** Of the webhooks topic, as it is. */
  partitions: number;
  /** How long Kafka may take before the webhook is kept in PostgreSQL; 2 s if absent. */
  patienceMs?: number;
}

/**
 * Webhooks need no order, so all of one moment go to one partition, and to the next one a moment later: a send of one record
 * costs as much as one of twenty, and a spread over all partitions made six small ones of each.
 */
const SLICE_MS = 50;
/**
 * Between two sends at least, unless some wait: what comes alone goes at once, and a provider that posts over a few connections only,
 * each after its last answer, is not slowed.
 */
const REST_MS = 20;
const SOME = 8;
/** As many are open at 3,000 posts a second while all is well. */
const FEW_OPEN = 32;
const QUIET_STEP_MS = 10;

/** Where a webhook is safe now; `nowhere` asks the provider to send it again. */
export type Kept = 'kafka' | 'spool' | 'nowhere';

const keptWebhooks = counter(METRICS.webhooksKept, 'Webhooks acknowledged, by where they were kept; nowhere: refused with 503');

/** Keeps raw webhooks: in Kafka, or in PostgreSQL while Kafka does not acknowledge. */
export class WebhookIntake {
  /** Kafka did not acknowledge in time: until it does again, nothing waits for it, and nothing piles up in the producer. */
  private doubted = false;
  private open = 0;
  private collected: Array<{ record: OutRecord; sent: (answer: Promise<void>) => void }> = [];
  private timer: NodeJS.Timeout | undefined;
  private sentAt = Number.NEGATIVE_INFINITY;
  private readonly patienceMs: number;

  constructor(private readonly options: IntakeOptions) {
    this.patienceMs = options.patienceMs ?? 2_000;
  }

  get doubtsKafka(): boolean {
    return this.doubted;
  }

  /**
   * Fulfils when few webhooks wait for their acknowledgement, or after `mostMs`. A provider that is not answered in time sends
   * everything again; the read model may be a little late.
   */
  async quiet(mostMs: number): Promise<void> {
    for (let waitedMs = 0; this.open > FEW_OPEN && waitedMs < mostMs; waitedMs += QUIET_STEP_MS) await pause(QUIET_STEP_MS);
  }

  async keep({ endpointId, provider }: WebhookNumber, body: Buffer): Promise<Kept> {
    const at = this.options.clock.nowMs();
    const eventId = formatId('evt', newUuid(at));
    const { bytes, isPacked } = await packBody(body);
    const value = this.options.codec.encode('WebhookReceived', { eventId, at, endpointId, provider, body: bytes });
    this.open++;
    const kept = await this.keepValue({ eventId, endpointId, value, isPacked, receivedAtMs: at }).finally(() => this.open--);
    keptWebhooks.add(1, { kept });
    return kept;
  }

  /** Sends what was spooled, a batch of it, and answers how much. Waits for Kafka, and rejects when it is away for long. */
  async relayOnce(): Promise<number> {
    const { spool, log } = this.options;
    const taken = await spool.take();
    if (taken.length === 0) {
      this.doubted = false;
      return 0;
    }
    const ids = taken.map(({ id }) => id);
    try {
      await Promise.all(taken.map(({ endpoint_id, value, packed }) => this.send(endpoint_id, value, packed)));
    } catch (error) {
      await spool.release(ids);
      throw error;
    }
    if (this.doubted)
      log.info('Kafka acknowledges again; webhooks go straight to it, and the spooled ones follow', { count: taken.length });
    this.doubted = false;
    await spool.delete(ids);
    return taken.length;
  }

  private async keepValue(webhook: SpooledWebhook): Promise<Kept> {
    if (!this.doubted) {
      const { endpointId, value, isPacked } = webhook;
      if (await inTime(this.send(endpointId, value, isPacked), this.patienceMs)) return 'kafka';
      if (!this.doubted)
        this.options.log.warn('Kafka does not acknowledge; webhooks are kept in PostgreSQL until it does', {
          waitedMs: this.patienceMs,
        });
      this.doubted = true;
    }
    if (await inTime(this.options.spool.keep(webhook), this.patienceMs)) return 'spool';
    return 'nowhere';
  }

  private send(endpointId: string, value: Buffer, isPacked: boolean): Promise<void> {
    return new Promise((sent) => {
      this.collected.push({ record: { key: Buffer.from(endpointId), value, headers: headersOf(isPacked) }, sent });
      const left = this.sentAt + REST_MS - this.options.clock.monotonicMs();
      if (left <= 0 || this.collected.length >= SOME) this.sendCollected();
      else this.timer ??= setTimeout(() => this.sendCollected(), left);
    });
  }

  private sendCollected(): void {
    const { producer, topic, partitions, clock } = this.options;
    const collected = this.collected;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.collected = [];
    this.sentAt = clock.monotonicMs();
    const answer = producer.send(
      topic,
      Math.floor(this.sentAt / SLICE_MS) % partitions,
      collected.map(({ record }) => record),
    );
    for (const { sent } of collected) sent(answer);
  }
}

/** A timer by hand: an AbortController for each webhook cost a tenth of its CPU. */
function inTime(work: Promise<void>, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds);
    const settle = (done: boolean) => () => {
      clearTimeout(timer);
      resolve(done);
    };
    work.then(settle(true), settle(false));
  });
}
