import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import type { ConfigurationInput } from './configuration';
import type {
  ConfigurationReport,
  Delivery,
  DeliveryFilter,
  RawWebhook,
  RawWebhookAnswer,
  RecipientReport,
  SeenRequest,
  SimulatorSummary,
  StatusOrder,
  TokenReport,
} from './control/control-types';
import type { TemplateInput } from './graph/template-definitions';
import type { RuleInput } from './rules/actions';
import type { RuleState } from './rules/rule-book';

/** The simulator said no: `detail` says what to do. */
export class SimulatorRefusal extends Error {
  constructor(
    readonly httpStatus: number,
    readonly body: { error: string; detail: string; problems?: { path: string; message: string }[] },
  ) {
    const problems = (body.problems ?? []).map(({ path, message }) => `${path}: ${message}`).join('; ');
    super(`${body.error}: ${body.detail} ${problems}`.trim());
    this.name = 'SimulatorRefusal';
  }
}

/** The control API with types; works against any simulator, in this process or another. */
export class SimulatorControl {
  readonly #pool: Pool;

  constructor(readonly url: string) {
    this.#pool = new Pool(url, { connections: 8, pipelining: 1, keepAliveTimeout: 4000 });
  }

  /** True once the simulator answers. */
  async isReady(): Promise<boolean> {
    try {
      await this.#call('GET', 'health');
      return true;
    } catch {
      return false;
    }
  }

  summary(): Promise<SimulatorSummary> {
    return this.#call('GET', 'summary');
  }

  /** Oldest first. */
  async deliveries(filter: DeliveryFilter = {}): Promise<Delivery[]> {
    const all: Delivery[] = [];
    for await (const delivery of this.streamDeliveries(filter)) all.push(delivery);
    return all;
  }

  /** As `deliveries`, one at a time: for millions. */
  async *streamDeliveries(filter: DeliveryFilter = {}): AsyncGenerator<Delivery> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
    const answer = await this.#pool.request({ method: 'GET', path: `/control/deliveries?${query.toString()}` });
    if (answer.statusCode !== 200)
      throw new SimulatorRefusal(answer.statusCode, (await answer.body.json()) as SimulatorRefusal['body']);
    for await (const line of createInterface({ input: answer.body })) yield JSON.parse(line) as Delivery;
  }

  /** E.164 with or without plus. */
  recipient(number: string): Promise<RecipientReport> {
    return this.#call('GET', `recipients/${encodeURIComponent(number)}`);
  }

  token(token: string): Promise<TokenReport> {
    return this.#call('GET', `tokens/${encodeURIComponent(token)}`);
  }

  /** The newest send requests as they came in, newest last, with what they were answered. */
  requests(filter: { phoneNumberId?: string; limit?: number } = {}): Promise<SeenRequest[]> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
    return this.#call('GET', `requests?${query.toString()}`);
  }

  /** Forgets what happened and what is on its way. Numbers, templates, subscription and settings stay; rules only if asked. */
  async reset(options: { keepRules?: boolean } = {}): Promise<void> {
    await this.#call('POST', 'reset', options);
  }

  /** Members left out stay as they are. Refused as a whole when the webhook endpoint does not answer its challenge. */
  configure(change: ConfigurationInput): Promise<ConfigurationReport> {
    return this.#call('POST', 'config', change);
  }

  configuration(): Promise<ConfigurationReport> {
    return this.#call('GET', 'config');
  }

  async registerTemplates(...templates: TemplateInput[]): Promise<void> {
    await this.#call('POST', 'templates', templates);
  }

  /** Answers the rule's id. */
  async addRule(rule: RuleInput): Promise<string> {
    const { ids } = await this.#call<{ ids: string[] }>('POST', 'rules', rule);
    return ids[0]!;
  }

  rules(): Promise<RuleState[]> {
    return this.#call('GET', 'rules');
  }

  async removeRule(id: string): Promise<void> {
    await this.#call('DELETE', `rules/${encodeURIComponent(id)}`);
  }

  async clearRules(): Promise<void> {
    await this.#call('DELETE', 'rules');
  }

  async pauseWebhooks(): Promise<void> {
    await this.#call('POST', 'webhooks/pause');
  }

  async resumeWebhooks(): Promise<void> {
    await this.#call('POST', 'webhooks/resume');
  }

  /** Lets every status happen now and waits for the receiver; false when the deadline came first. */
  async flushWebhooks(deadlineMs = 10_000): Promise<boolean> {
    return (await this.#call<{ drained: boolean }>('POST', 'webhooks/flush', { deadlineMs })).drained;
  }

  /** Signs the next `count` webhook posts wrongly; their repetitions are right again. */
  async sendBadSignatures(count = 1): Promise<void> {
    await this.#call('POST', 'webhooks/bad-signatures', { count });
  }

  sendWebhook(webhook: RawWebhook): Promise<RawWebhookAnswer> {
    return this.#call('POST', 'send-webhook', webhook);
  }

  /** Posts one more status for an earlier delivery. */
  sendStatus(order: StatusOrder): Promise<{ messageId: string }> {
    return this.#call('POST', 'send-status', order);
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const answer = await this.#pool.request({
      method,
      path: `/control/${path}`,
      headersTimeout: 150_000,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const json: unknown = await answer.body.json();
    if (answer.statusCode !== 200) throw new SimulatorRefusal(answer.statusCode, json as SimulatorRefusal['body']);
    return json as T;
  }
}
