import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import { isRetriable } from '#runtime/retriable';
import type { LaneMessage } from './lane/lane-message';
import type { NumberLane } from './lane/number-lane';
import { MAX_BATCH, type DueItem, type GatePort, type Verdict } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

export interface Claiming {
  lane: NumberLane;
  message: LaneMessage;
  /** Of the lane when the message was taken from it. */
  ownership: number;
}

export interface ClaimBatchesOptions {
  gate: Pick<GatePort, 'decide' | 'parkRecord'>;
  clock: Clock;
  log: Log;
  instance: string;
  deadlineMs: number;
  templateKeyOf(message: LaneMessage): string | null;
  /** One call per message, in the turn in which the gate's answer came. `deadlineAt` is monotonic. */
  onVerdict(claiming: Claiming, verdict: Verdict, deadlineAt: number): void;
  /** The gate could not be asked: whether it let them through is unknown, and they go back to their lanes. */
  onUnanswered(claiming: readonly Claiming[]): void;
}

/** What comes within this time goes to the gate together: one claim a statement is 5,800/s, fifty are 70,000/s. */
const COLLECT_MS = 2;
const MOST_OUT = 6;
/** What the gate could not take alone that often is put aside. */
const MOST_FAULTS = 5;
/** When the gate is slower than this its messages miss their slots; asking still earlier would only let a cancel come too late. */
const MOST_LEAD_MS = 400;

/** Collects over all lanes what asks for the gate, and asks in batches. */
export class ClaimBatches {
  private collected: Claiming[] = [];
  private timer: NodeJS.Timeout | undefined;
  private out = 0;
  private readonly asking = new Set<readonly Claiming[]>();
  private failedAt = Number.NEGATIVE_INFINITY;
  private failures = 0;
  private tookMs = 12;

  constructor(private readonly options: ClaimBatchesOptions) {}

  get pending(): number {
    return this.collected.length;
  }

  get outstanding(): number {
    return this.out;
  }

  /** How long before its slot a message should ask. */
  get leadMs(): number {
    return Math.min(MOST_LEAD_MS, COLLECT_MS + 2 + 2 * this.tookMs);
  }

  /** Monotonic; in the past unless the gate failed lately. */
  get resumesAt(): number {
    return this.failures === 0 ? Number.NEGATIVE_INFINITY : this.failedAt + Math.min(1_000, 50 * 2 ** this.failures);
  }

  isAsking(occurrenceId: Buffer): boolean {
    const asks = ({ message }: Claiming) => message.item.occurrenceId.equals(occurrenceId);
    return this.collected.some(asks) || [...this.asking].some((batch) => batch.some(asks));
  }

  add(claiming: Claiming): void {
    this.collected.push(claiming);
    if (this.collected.length >= MAX_BATCH) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), COLLECT_MS);
  }

  /** Asks for everything that was collected; resolves when all of it is answered. */
  async flushOnce(): Promise<void> {
    await Promise.all(this.takeBatches().map((batch) => this.ask(batch)));
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.out >= MOST_OUT) return;
    for (const batch of this.takeBatches()) void this.ask(batch);
  }

  private takeBatches(): Claiming[][] {
    const all = this.collected;
    this.collected = [];
    const batches: Claiming[][] = [];
    for (let from = 0; from < all.length; from += MAX_BATCH) batches.push(all.slice(from, from + MAX_BATCH));
    return batches;
  }

  private async ask(batch: readonly Claiming[]): Promise<void> {
    const { gate, clock, instance, deadlineMs, onVerdict } = this.options;
    const began = clock.monotonicMs();
    let verdicts: Verdict[];
    this.out++;
    this.asking.add(batch);
    try {
      const items = batch.map((claiming) => this.itemOf(claiming));
      verdicts = await gate.decide(items, { instance, deadlineMs });
    } catch (error) {
      return await this.unanswered(batch, error);
    } finally {
      this.out--;
      this.asking.delete(batch);
      if (this.collected.length > 0) this.timer ??= setTimeout(() => this.flush(), COLLECT_MS);
    }
    this.failures = 0;
    const took = clock.monotonicMs() - began;
    this.tookMs += (took - this.tookMs) / (took > this.tookMs ? 4 : 16);
    senderMetrics.gateSeconds.record(took / 1_000);
    senderMetrics.gateBatch.record(batch.length);
    batch.forEach((claiming, index) => onVerdict(claiming, verdicts[index]!, began + deadlineMs));
  }

  private async unanswered(batch: readonly Claiming[], error: unknown): Promise<void> {
    if (isRetriable(error)) {
      this.failures++;
      this.failedAt = this.options.clock.monotonicMs();
      if (this.failures === 1 || this.failures % 20 === 0) {
        this.options.log.warn('the gate does not answer; its messages wait in their lanes and ask again', {
          count: batch.length,
          error,
        });
      }
      this.options.onUnanswered(batch);
    } else if (batch.length > 1) {
      // One message that the gate can't take must not stop the others.
      for (const claiming of batch) await this.ask([claiming]);
    } else {
      const { message } = batch[0]!;
      message.faults = (message.faults ?? 0) + 1;
      if (message.faults >= MOST_FAULTS) return this.park(batch[0]!, error);
      this.failures++;
      this.failedAt = this.options.clock.monotonicMs();
      this.options.onUnanswered(batch);
    }
  }

  private async park(claiming: Claiming, failure: unknown): Promise<void> {
    const { gate, log, onVerdict, onUnanswered } = this.options;
    const { item } = claiming.message;
    log.error('the gate can not take a message; it is parked, and released again or refused by the scheduler', {
      error: failure,
    });
    try {
      await gate.parkRecord({ key: item.occurrenceId, value: item.record?.value ?? Buffer.alloc(0), reason: 'gate_fault' });
      senderMetrics.parked.add(1, { reason: 'gate_fault' });
      onVerdict(claiming, { kind: 'parked' }, 0);
    } catch {
      onUnanswered([claiming]);
    }
  }

  private itemOf({ message }: Claiming): DueItem {
    return { ...message.item, recipientHash: message.found.hash, templateKey: this.options.templateKeyOf(message) };
  }
}
