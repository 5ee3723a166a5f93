import { partitionFor } from '#contracts/murmur2';
import type { SendingNumber } from '../numbers/number-directory';
import type { ClaimedMessage } from './lane-message';
import { NumberLane } from './number-lane';

/** After a takeover the guard knows nothing of what the last owner sent in the second before. */
export const TAKEOVER_WAIT_MS = 1_000;
/** Between leaving and rejoining a group there is at most one rebalance; after a longer absence another member may have sent. */
const SAME_OWNER_MS = 3_000;
/** Lanes of other senders' numbers are kept for their guards, in case the partition comes back. */
const FORGET_AFTER_MS = 60_000;

export interface LanesOptions {
  horizonMs: number;
  marginMs: number;
  /** Monotonic. */
  now(): number;
}

/** The lanes of all numbers, and which partitions of the executions are this process's. */
export class Lanes {
  private readonly byNumber = new Map<string, NumberLane>();
  private assigned = new Map<number, { notBefore: number }>();
  private before: { partitions: ReadonlySet<number>; at: number } = { partitions: new Set(), at: Number.NEGATIVE_INFINITY };
  private partitionCount = 1;
  readonly active = new Set<NumberLane>();

  constructor(private readonly options: LanesOptions) {}

  setPartitionCount(count: number): void {
    this.partitionCount = count;
  }

  partitionOf(providerIdentity: string): number {
    return partitionFor(providerIdentity, this.partitionCount);
  }

  owns(number: { providerIdentity: string }): boolean {
    return this.assigned.has(this.partitionOf(number.providerIdentity));
  }

  get assignedPartitions(): number[] {
    return [...this.assigned.keys()];
  }

  /** `sinceHeartbeat`: a member that was out of the group for longer than that can't know who sent meanwhile. */
  assign(partitions: readonly number[], sinceHeartbeatMs: number): void {
    const now = this.options.now();
    const unbroken = now - this.before.at < SAME_OWNER_MS && sinceHeartbeatMs < SAME_OWNER_MS;
    for (const partition of partitions) {
      const kept = unbroken && this.before.partitions.has(partition);
      this.assigned.set(partition, { notBefore: kept ? now : now + TAKEOVER_WAIT_MS });
    }
    for (const lane of this.byNumber.values()) {
      const of = this.assigned.get(lane.partition);
      if (of && partitions.includes(lane.partition)) this.takeOver(lane, of.notBefore);
    }
  }

  /** Empties the lanes of these partitions. Answers the claims that were not sent; who redelivers the rest is Kafka's matter. */
  revoke(partitions: readonly number[]): Array<{ lane: NumberLane; claimed: ClaimedMessage[]; waiting: Buffer[] }> {
    const now = this.options.now();
    this.before = { partitions: new Set(this.assigned.keys()), at: now };
    for (const partition of partitions) this.assigned.delete(partition);
    const dropped = [];
    for (const lane of this.byNumber.values()) {
      if (!partitions.includes(lane.partition) || lane.block === 'not_owned') continue;
      lane.block = 'not_owned';
      lane.hold = null;
      lane.ownership++;
      lane.pace.dropSlots();
      const queued = lane.queue.remove(() => true);
      const waiting = queued.filter(({ origin }) => origin.from === 'waiting').map(({ item }) => item.occurrenceId);
      const claimed = lane.ready.remove(() => true);
      lane.loading = 0;
      this.active.delete(lane);
      dropped.push({ lane, claimed, waiting });
    }
    return dropped;
  }

  get(numberId: string): NumberLane | undefined {
    return this.byNumber.get(numberId);
  }

  /** The lane of a number that is ours; made when it is needed first. */
  of(number: SendingNumber, learnedRate?: number): NumberLane {
    const known = this.byNumber.get(number.numberId);
    const partition = this.partitionOf(number.providerIdentity);
    if (known && known.partition === partition) return known;
    const { numberId, providerIdentity, ratePerSecond } = number;
    const lane = new NumberLane(
      numberId,
      providerIdentity,
      partition,
      ratePerSecond,
      this.options,
      this.options.now(),
      learnedRate,
    );
    this.byNumber.set(numberId, lane);
    const of = this.assigned.get(partition);
    if (of) this.takeOver(lane, of.notBefore);
    return lane;
  }

  /** Whether a claim waits for its slot here. */
  hasClaimed(occurrenceId: Buffer): boolean {
    for (const lane of this.byNumber.values()) {
      if (lane.ready.some(({ message }) => message.item.occurrenceId.equals(occurrenceId))) return true;
    }
    return false;
  }

  owned(): NumberLane[] {
    return [...this.byNumber.values()].filter((lane) => lane.block !== 'not_owned');
  }

  all(): Iterable<NumberLane> {
    return this.byNumber.values();
  }

  /** After a restart of Redis nothing that was reserved counts. */
  dropSlots(): void {
    for (const lane of this.byNumber.values()) lane.pace.dropSlots();
  }

  forgetIdle(): void {
    if (this.options.now() - this.before.at < FORGET_AFTER_MS) return;
    for (const [numberId, lane] of this.byNumber) {
      if (lane.block === 'not_owned' && lane.inFlight === 0 && lane.claiming === 0) this.byNumber.delete(numberId);
    }
  }

  private takeOver(lane: NumberLane, notBefore: number): void {
    lane.pace.waitUntil(notBefore);
    if (lane.block === 'not_owned') lane.block = null;
  }
}
