import type { NumberConfiguration, Settings, Subscription } from './configuration';
import { NumberLedger, RATE_WINDOW_MICROS } from './oracle/number-ledger';
import { RateGate } from './oracle/sliding-window';
import { latencySampler, type LatencySampler } from './timing/latency';
import type { RandomSource } from './timing/random';
import type { NumberIdentity } from './webhooks/render-webhook';

/** A sending number as the provider keeps it: what was configured, over the common settings. */
export class SimulatedNumber {
  readonly gate = new RateGate(undefined, RATE_WINDOW_MICROS);
  ledger = new NumberLedger(this.gate);
  identity!: NumberIdentity;
  subscription: Subscription | null = null;
  latency!: LatencySampler;
  /** `x-business-use-case-usage` of an account with room to spare. */
  usage!: string;

  constructor(
    public configuration: NumberConfiguration,
    settings: Settings,
    private readonly random: RandomSource,
  ) {
    this.configure(configuration, settings);
  }

  configure(configuration: NumberConfiguration, settings: Settings): void {
    this.configuration = configuration;
    const { phoneNumberId, wabaId = settings.wabaId, displayPhoneNumber = displayNumberFor(phoneNumberId) } = configuration;
    const rate = configuration.ratePerSecond === undefined ? settings.ratePerSecond : configuration.ratePerSecond;
    this.identity = { phoneNumberId, wabaId, displayPhoneNumber };
    this.subscription = configuration.webhook === undefined ? settings.webhook : configuration.webhook;
    this.latency = latencySampler(configuration.latency ?? settings.latency, this.random);
    this.gate.limitPerWindow = rate ?? undefined;
    const type = (name: string, calls: number): string =>
      `{"type": "${name}", "call_count": ${calls}, "total_cputime": 1, "total_time": 1, "estimated_time_to_regain_access": 0}`;
    this.usage = `{"${wabaId}": [${type('whatsapp_business_management', 1)}, ${type('whatsapp', 3)}]}`;
  }

  forgetCounts(): NumberLedger {
    this.ledger = new NumberLedger(this.gate);
    return this.ledger;
  }
}

/** A made-up number in an exchange that is assigned to nobody, the same for the same id. */
function displayNumberFor(phoneNumberId: string): string {
  return `1500555${phoneNumberId.slice(-4).padStart(4, '0')}`;
}
