import { BusiestWindow, type RateGate } from './sliding-window';

/** A hundredth less than Meta's second: a sender that keeps to its rate at its own socket may arrive this much closer together here. */
export const RATE_WINDOW_MICROS = 990_000;

export interface NumberSummary {
  ratePerSecond: number | null;
  /** Send requests that arrived, refused ones too. */
  received: number;
  /** Requests refused with 130429 because they came too fast. */
  rejectedByRate: number;
  /** Messages the provider took on, whatever it answered. */
  deliveries: number;
  /** The most requests that arrived in any sliding 990 ms. */
  mostIn990Ms: number;
  /** The most requests that arrived in any sliding 1,000 ms. */
  mostIn1000Ms: number;
  firstArrivalAt: string | null;
  lastArrivalAt: string | null;
  /** (received - 1) / time between the first and the last arrival. */
  receivedPerSecond: number | null;
  deliveredPerSecond: number | null;
}

/** What happened at one phone number id. */
export class NumberLedger {
  readonly #window990 = new BusiestWindow(990_000);
  readonly #window1000 = new BusiestWindow(1_000_000);
  #received = 0;
  #rejectedByRate = 0;
  #deliveries = 0;
  #firstMonotonic = 0;
  #lastMonotonic = 0;
  #firstWall = 0;
  #lastWall = 0;
  #firstDelivery = 0;
  #lastDelivery = 0;

  /** The gate outlives the ledger: forgetting what was counted must not let a burst through. */
  constructor(private readonly gate: RateGate) {}

  arrived(monotonicMicros: number, wallMicros: number): void {
    if (this.#received === 0) {
      this.#firstMonotonic = monotonicMicros;
      this.#firstWall = wallMicros;
    }
    this.#received += 1;
    this.#lastMonotonic = monotonicMicros;
    this.#lastWall = wallMicros;
    this.#window990.record(monotonicMicros);
    this.#window1000.record(monotonicMicros);
  }

  /** False when the request has to be refused with 130429. */
  passesRate(monotonicMicros: number): boolean {
    if (this.gate.tryAccept(monotonicMicros)) return true;
    this.#rejectedByRate += 1;
    return false;
  }

  delivered(monotonicMicros: number): void {
    if (this.#deliveries === 0) this.#firstDelivery = monotonicMicros;
    this.#deliveries += 1;
    this.#lastDelivery = monotonicMicros;
  }

  summary(): NumberSummary {
    return {
      ratePerSecond: this.gate.limitPerWindow ?? null,
      received: this.#received,
      rejectedByRate: this.#rejectedByRate,
      deliveries: this.#deliveries,
      mostIn990Ms: this.#window990.most,
      mostIn1000Ms: this.#window1000.most,
      firstArrivalAt: this.#received > 0 ? instant(this.#firstWall) : null,
      lastArrivalAt: this.#received > 0 ? instant(this.#lastWall) : null,
      receivedPerSecond: perSecond(this.#received, this.#lastMonotonic - this.#firstMonotonic),
      deliveredPerSecond: perSecond(this.#deliveries, this.#lastDelivery - this.#firstDelivery),
    };
  }
}

function perSecond(count: number, micros: number): number | null {
  return count > 1 && micros > 0 ? Math.round(((count - 1) / micros) * 1e9) / 1000 : null;
}

/** ISO 8601 with microseconds. */
export function instant(wallMicros: number): string {
  const whole = Math.floor(wallMicros);
  const milliseconds = Math.floor(whole / 1000);
  return `${new Date(milliseconds).toISOString().slice(0, -1)}${String(whole - milliseconds * 1000).padStart(3, '0')}Z`;
}
