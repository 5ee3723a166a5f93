import { CountTable, recipientKey, textKey } from './count-table';
import { DeliveryLog, type DeliveryEntry } from './delivery-log';
import { NumberLedger, type NumberSummary } from './number-ledger';

/** How much the oracle remembers. Details are dropped oldest first; counts stop taking new keys, and say so. */
export interface OracleBounds {
  deliveries: number;
  recipients: number;
  tokens: number;
  requests: number;
}

/** About 90 bytes a delivery with a 48-character token, 20 to 40 bytes a recipient or token, 2 KB a request: 0.4 GB when all are full. */
export const DEFAULT_BOUNDS: OracleBounds = { deliveries: 2_000_000, recipients: 4_000_000, tokens: 4_000_000, requests: 250 };

/** A send request as it came in. The body stays text until somebody asks: parsed objects are work for the garbage collector. */
export interface KeptRequest {
  wallMicros: number;
  phoneNumberId: string;
  answer: string;
  body: string;
}

interface CountSummary {
  distinct: number;
  /** How many got 1, 2, ... messages. */
  histogram: Record<string, number>;
  most: number;
  /** Keys that came twice or more, the first thousand of them. */
  repeated: string[];
  /** Above zero, the bound was reached and the histogram is not the whole truth. */
  uncounted: number;
}

export interface OracleSummary {
  received: number;
  accepted: number;
  /** Requests by what they were answered: a Graph code, or `http_502`, `truncated`, `dropped`, `hung`. */
  rejected: Record<string, number>;
  rejectedByRate: number;
  /** Messages the provider took on, whatever it answered. */
  deliveries: number;
  deliveriesByAnswer: Record<string, number>;
  recipients: CountSummary;
  tokens: CountSummary;
  deliveriesWithoutToken: number;
  numbers: Record<string, NumberSummary>;
  /** Deliveries whose details are no longer kept. */
  detailsDropped: number;
}

const MAX_REPEATED = 1000;

class Counted {
  readonly #table: CountTable;
  readonly #repeated: string[] = [];
  #most = 0;

  constructor(
    maxKeys: number,
    private readonly keyOf: (text: string) => { high: number; low: number },
  ) {
    this.#table = new CountTable(maxKeys);
  }

  add(text: string): void {
    const key = this.keyOf(text);
    const count = this.#table.increment(key.high, key.low);
    if (count > this.#most) this.#most = count;
    if (count === 2 && this.#repeated.length < MAX_REPEATED) this.#repeated.push(text);
  }

  get(text: string): number {
    const key = this.keyOf(text);
    return this.#table.get(key.high, key.low);
  }

  summary(): CountSummary {
    const { distinct, uncounted } = this.#table;
    return { distinct, histogram: this.#table.histogram(), most: this.#most, repeated: [...this.#repeated], uncounted };
  }
}

/** What really happened, counted apart from what callers were told. */
export class Oracle {
  readonly log: DeliveryLog;
  readonly numbers = new Map<string, NumberLedger>();
  readonly #recipients: Counted;
  readonly #tokens: Counted;
  readonly #requests: KeptRequest[] = [];
  readonly #rejected = new Map<string, number>();
  readonly #byAnswer = new Map<string, number>();
  #received = 0;
  #accepted = 0;
  #withoutToken = 0;

  constructor(private readonly bounds: OracleBounds) {
    this.log = new DeliveryLog(bounds.deliveries);
    this.#recipients = new Counted(bounds.recipients, recipientKey);
    this.#tokens = new Counted(bounds.tokens, textKey);
  }

  received(): void {
    this.#received += 1;
  }

  accepted(): void {
    this.#accepted += 1;
  }

  rejected(answer: string): void {
    this.#rejected.set(answer, (this.#rejected.get(answer) ?? 0) + 1);
  }

  /** Counts a message that the provider took on; answers its place in the log. */
  delivered(entry: DeliveryEntry): number {
    this.#recipients.add(entry.recipient);
    if (entry.token === '') this.#withoutToken += 1;
    else this.#tokens.add(entry.token);
    this.#byAnswer.set(entry.answer, (this.#byAnswer.get(entry.answer) ?? 0) + 1);
    return this.log.append(entry);
  }

  keepRequest(request: KeptRequest): void {
    if (this.bounds.requests === 0) return;
    this.#requests.push(request);
    // Cut now and then: a shift for every request would move the whole list.
    if (this.#requests.length >= this.bounds.requests * 2) this.#requests.splice(0, this.#requests.length - this.bounds.requests);
  }

  /** Newest last. */
  requests(): KeptRequest[] {
    return this.#requests.slice(-this.bounds.requests);
  }

  recipientCount(recipient: string): number {
    return this.#recipients.get(recipient);
  }

  tokenCount(token: string): number {
    return this.#tokens.get(token);
  }

  summary(): OracleSummary {
    const numbers = [...this.numbers].map(([id, ledger]): [string, NumberSummary] => [id, ledger.summary()]);
    return {
      received: this.#received,
      accepted: this.#accepted,
      rejected: Object.fromEntries(this.#rejected),
      rejectedByRate: numbers.reduce((sum, [, number]) => sum + number.rejectedByRate, 0),
      deliveries: this.log.nextSequence,
      deliveriesByAnswer: Object.fromEntries(this.#byAnswer),
      recipients: this.#recipients.summary(),
      tokens: this.#tokens.summary(),
      deliveriesWithoutToken: this.#withoutToken,
      numbers: Object.fromEntries(numbers),
      detailsDropped: this.log.firstSequence,
    };
  }
}
