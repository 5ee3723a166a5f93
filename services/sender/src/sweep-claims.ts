import { MAX_BATCH, type GatePort, type ResultOptions } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

export interface SweepClaimsOptions extends ResultOptions {
  gate: Pick<GatePort, 'sweepDeadlines' | 'sweepWaiting'>;
  graceMs: number;
}

/** Claims without an answer after their deadline become uncertain, uncertain ones without evidence unconfirmed, waits that end final. */
export class SweepClaims {
  constructor(private readonly options: SweepClaimsOptions) {}

  /** Everything that is overdue now, in steps that hold few locks. */
  async sweepOnce(): Promise<number> {
    const { gate, graceMs, evidenceWindowMs, resendAfterMs } = this.options;
    let total = 0;
    for (;;) {
      const { overdue, unconfirmed } = await gate.sweepDeadlines({ graceMs, evidenceWindowMs, resendAfterMs, limit: MAX_BATCH });
      senderMetrics.swept.add(overdue, { to: 'uncertain' });
      senderMetrics.swept.add(unconfirmed, { to: 'unconfirmed' });
      total += overdue + unconfirmed;
      if (overdue < MAX_BATCH && unconfirmed < MAX_BATCH) break;
    }
    return total;
  }

  async sweepWaitingOnce(): Promise<number> {
    let total = 0;
    for (;;) {
      const ended = await this.options.gate.sweepWaiting({ limit: MAX_BATCH });
      senderMetrics.swept.add(ended, { to: 'ended' });
      total += ended;
      if (ended < MAX_BATCH) return total;
    }
  }
}
