import type { Clock } from '#runtime/clock';
import type { Lanes } from './lane/lanes';
import type { NumberLane } from './lane/number-lane';
import { laneCredit } from './lane/credit';
import type { GatePort } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';
import type { TakeRecords } from './take-records';

export interface WakeWaitingOptions {
  gate: Pick<GatePort, 'takeWaiting' | 'releaseWaiting'>;
  clock: Clock;
  lanes: Lanes;
  records: TakeRecords;
  windowMs: number;
  accepting(): boolean;
}

/** Waiting messages of our numbers, whose time has come, go into the free space of their lanes before new work counts as credit. */
export class WakeWaiting {
  constructor(private readonly options: WakeWaitingOptions) {}

  /** Answers how many messages were taken. */
  async wakeOnce(): Promise<number> {
    const { gate, clock, lanes, records } = this.options;
    if (!this.options.accepting()) return 0;
    const now = clock.monotonicMs();
    const owned = new Map<string, { lane: NumberLane; ownership: number }>();
    const wanted = lanes.owned().flatMap((lane) => {
      if (lane.block !== null) return [];
      const free = laneCredit(
        { ratePerSecond: lane.pace.rate.at(now), queued: lane.queued, blocked: false },
        this.options.windowMs,
      );
      if (free === 0) return [];
      owned.set(lane.numberId, { lane, ownership: lane.ownership });
      return [{ numberId: lane.numberId, free }];
    });
    if (wanted.length === 0) return 0;
    const items = await gate.takeWaiting(wanted);
    const receivedAt = clock.nowMs();
    const lost: Buffer[] = [];
    for (const item of items) {
      const of = owned.get(item.numberId);
      if (!of || of.lane.ownership !== of.ownership || of.lane.block === 'not_owned') {
        lost.push(item.occurrenceId);
        continue;
      }
      const { attempt, reason, since, wakeAt: _wakeAt, givesUpAt: _givesUpAt, ...due } = item;
      records.take(of.lane, due, { from: 'waiting', reason, since, attempt }, null, receivedAt);
    }
    if (lost.length > 0) await gate.releaseWaiting(lost);
    senderMetrics.woken.add(items.length - lost.length);
    return items.length - lost.length;
  }
}
