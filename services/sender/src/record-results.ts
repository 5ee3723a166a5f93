import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import { isRetriable } from '#runtime/retriable';
import { MAX_BATCH, type AttemptResult, type GatePort, type ResultOptions } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

/** Nobody waits for a result: what a crash within this time leaves unrecorded, the provider's evidence settles. */
const COLLECT_MS = 15;
const MOST_OUT = 4;
/** What the database refuses alone that often is given up: trying for ever would keep everything else from being claimed. */
const MOST_FAULTS = 20;
/** More than this unrecorded, and nothing new is claimed: memory stays bounded however long PostgreSQL is away. */
const MOST_UNRECORDED = 4_000;

export interface ResultRecorderOptions extends ResultOptions {
  gate: Pick<GatePort, 'recordResults'>;
  clock: Clock;
  log: Log;
}

/** Results are collected over all lanes and recorded in batches, and tried again until they are recorded. */
export class ResultRecorder {
  private collected: AttemptResult[] = [];
  private timer: NodeJS.Timeout | undefined;
  private out = 0;
  private outItems = 0;
  private readonly recording = new Set<AttemptResult[]>();
  private failures = 0;
  private readonly faults = new WeakMap<AttemptResult, number>();

  constructor(private readonly options: ResultRecorderOptions) {}

  get unrecorded(): number {
    return this.collected.length + this.outItems;
  }

  /** False while results pile up: then nothing new may be claimed. */
  get accepting(): boolean {
    return this.failures === 0 && this.unrecorded < MOST_UNRECORDED;
  }

  isUnrecorded(occurrenceId: Buffer): boolean {
    return [this.collected, ...this.recording].some((results) =>
      results.some((result) => result.occurrenceId.equals(occurrenceId)),
    );
  }

  add(result: AttemptResult): void {
    this.collected.push(result);
    if (this.collected.length >= MAX_BATCH && this.failures === 0) void this.recordOnce();
    else this.schedule();
  }

  /** Records what was collected. What could not be recorded is collected again. */
  async recordOnce(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.out >= MOST_OUT) return this.schedule();
    const all = this.collected;
    this.collected = [];
    const batches: AttemptResult[][] = [];
    for (let from = 0; from < all.length; from += MAX_BATCH) batches.push(all.slice(from, from + MAX_BATCH));
    await Promise.all(batches.map((batch) => this.record(batch)));
    if (this.collected.length > 0) this.schedule();
  }

  private schedule(): void {
    const wait = this.failures === 0 ? COLLECT_MS : Math.min(1_000, 50 * 2 ** this.failures);
    this.timer ??= setTimeout(() => void this.recordOnce(), wait);
  }

  private async record(batch: AttemptResult[]): Promise<void> {
    const { gate, clock, log, evidenceWindowMs, resendAfterMs } = this.options;
    const began = clock.monotonicMs();
    this.out++;
    this.outItems += batch.length;
    this.recording.add(batch);
    try {
      await gate.recordResults(batch, { evidenceWindowMs, resendAfterMs });
      this.failures = 0;
      senderMetrics.recordSeconds.record((clock.monotonicMs() - began) / 1_000);
    } catch (error) {
      if (isRetriable(error)) {
        this.failures++;
        senderMetrics.recordFailures.add(1);
        if (this.failures === 1 || this.failures % 20 === 0) {
          log.warn('results can not be recorded; nothing new is claimed until they are', { count: this.unrecorded, error });
        }
        this.collected.push(...batch);
      } else if (batch.length > 1) {
        for (const result of batch) await this.record([result]);
      } else {
        const faults = (this.faults.get(batch[0]!) ?? 0) + 1;
        this.faults.set(batch[0]!, faults);
        this.failures++;
        if (faults < MOST_FAULTS) this.collected.push(...batch);
        else
          log.error('a result can not be recorded; its claim becomes uncertain at its deadline, and evidence settles it', {
            error,
          });
      }
    } finally {
      this.recording.delete(batch);
      this.out--;
      this.outItems -= batch.length;
    }
  }
}
