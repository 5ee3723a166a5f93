import { randomInt } from 'node:crypto';
import {
  DEFAULT_SETTINGS,
  mergeSettings,
  type Configuration,
  type NumberConfiguration,
  type Settings,
  type Subscription,
} from './configuration';
import { messageId, runSaltFrom } from './graph/message-id';
import { templateKey, type TemplateDefinition } from './graph/template-definitions';
import { Oracle, type OracleBounds } from './oracle/oracle';
import type { Action } from './rules/actions';
import { magicRecipient } from './rules/magic-recipients';
import { RuleBook } from './rules/rule-book';
import { SimulatedNumber } from './simulated-number';
import type { SimulatorClock } from './timing/clock';
import { seededRandom, type RandomSource } from './timing/random';
import { verifyEndpoint } from './webhooks/verify-endpoint';
import { WebhookEngine } from './webhooks/webhook-engine';

export type ConfigureResult = { ok: true } | { ok: false; url: string; reason: string };

/** All that the provider knows. HTTP is elsewhere. */
export class Simulator {
  settings: Settings = DEFAULT_SETTINGS;
  readonly numbers = new Map<string, SimulatedNumber>();
  readonly templates = new Map<string, TemplateDefinition>();
  readonly rules: RuleBook;
  readonly webhooks: WebhookEngine;
  readonly random: RandomSource;
  oracle: Oracle;
  /** How often each magic recipient that fails only at first was asked. */
  readonly #magicAttempts = new Map<string, number>();
  #seeded: RandomSource;
  #runSalt = runSaltFrom(Math.random);

  constructor(
    readonly clock: SimulatorClock,
    private readonly bounds: OracleBounds,
    seed: number,
  ) {
    this.#seeded = seededRandom(seed);
    this.random = () => this.#seeded();
    this.rules = new RuleBook(this.random);
    this.oracle = new Oracle(bounds);
    this.webhooks = new WebhookEngine(this.settings.webhooks, clock, this.random, (sequence, status) =>
      this.oracle.log.acknowledge(sequence, status),
    );
  }

  /** All or nothing: a webhook endpoint that does not answer its challenge leaves everything as it was. */
  async configure(change: Configuration, verifyByDefault: boolean): Promise<ConfigureResult> {
    for (const subscription of subscriptionsOf(change)) {
      if (!(subscription.verify ?? verifyByDefault) || subscription.verifyToken === undefined) continue;
      const verified = await verifyEndpoint(
        subscription.url,
        subscription.verifyToken,
        String(randomInt(1_000_000_000, 2_000_000_000)),
      );
      if (!verified.ok) return { ok: false, url: subscription.url, reason: verified.reason };
    }
    if (change.seed !== undefined) this.#seeded = seededRandom(change.seed);
    this.settings = mergeSettings(this.settings, change);
    await this.webhooks.reconfigure(this.settings.webhooks);
    for (const configured of change.numbers ?? []) {
      const known = this.numbers.get(configured.phoneNumberId);
      if (known) known.configuration = { ...known.configuration, ...configured };
      else this.#addNumber(configured);
    }
    for (const number of this.numbers.values()) number.configure(number.configuration, this.settings);
    for (const template of change.templates ?? []) this.templates.set(templateKey(template.name, template.language), template);
    for (const rule of change.rules ?? []) this.rules.add(rule);
    return { ok: true };
  }

  /** Undefined only with `strictNumbers`; otherwise an unknown number comes into being with the common settings. */
  numberFor(phoneNumberId: string): SimulatedNumber | undefined {
    const known = this.numbers.get(phoneNumberId);
    if (known || this.settings.strictNumbers) return known;
    return this.#addNumber({ phoneNumberId });
  }

  magicActions(recipient: string): readonly Action[] {
    const magic = this.settings.magicRecipients ? magicRecipient(recipient) : undefined;
    if (!magic) return [];
    if (magic.failuresBeforeSuccess === undefined) return magic.actions;
    const attempts = this.#magicAttempts.get(recipient) ?? 0;
    this.#magicAttempts.set(recipient, attempts + 1);
    return attempts % (magic.failuresBeforeSuccess + 1) < magic.failuresBeforeSuccess ? magic.actions : [];
  }

  messageIdOf(recipient: string, sequence: number): string {
    return messageId(recipient, sequence, this.#runSalt);
  }

  /** Forgets what happened and what is on its way; configuration, numbers and templates stay. */
  reset(keepRules: boolean): void {
    this.webhooks.clear();
    this.oracle = new Oracle(this.bounds);
    for (const [id, number] of this.numbers) this.oracle.numbers.set(id, number.forgetCounts());
    this.#magicAttempts.clear();
    // Sequence numbers begin again, so ids need another salt or two messages would share one.
    this.#runSalt = runSaltFrom(Math.random);
    if (!keepRules) this.rules.clear();
  }

  #addNumber(configuration: NumberConfiguration): SimulatedNumber {
    const number = new SimulatedNumber(configuration, this.settings, this.random);
    this.numbers.set(configuration.phoneNumberId, number);
    this.oracle.numbers.set(configuration.phoneNumberId, number.ledger);
    return number;
  }
}

function subscriptionsOf(change: Configuration): Subscription[] {
  return [change.webhook, ...(change.numbers ?? []).map((number) => number.webhook)].filter(
    (subscription): subscription is Subscription => subscription !== undefined && subscription !== null,
  );
}
