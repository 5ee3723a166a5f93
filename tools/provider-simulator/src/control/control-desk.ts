import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { configurationSchema } from '../configuration';
import { templateKey, templateSchema } from '../graph/template-definitions';
import { instant } from '../oracle/number-ledger';
import { MAGIC_RECIPIENTS } from '../rules/magic-recipients';
import { ruleSchema } from '../rules/actions';
import type { Simulator } from '../simulator';
import { badSignaturesSchema, flushSchema, rawWebhookSchema, resetSchema, statusOrderSchema } from './control-schemas';
import type { ConfigurationReport, RecipientReport, SeenRequest, SimulatorSummary, TokenReport } from './control-types';
import { deliveriesOf, streamDeliveries, filterFrom } from './list-deliveries';
import { emitStatus, sendRawWebhook } from './send-webhook';

interface ControlCall {
  parameter: string;
  query: URLSearchParams;
  body: unknown;
  response: ServerResponse;
}

/** `streamed`: the handler has written the answer itself. */
type ControlAnswer = { httpStatus: number; body: unknown } | 'streamed';
type Handler = (call: ControlCall) => ControlAnswer | Promise<ControlAnswer>;

const ok = (body: unknown): ControlAnswer => ({ httpStatus: 200, body });
const refused = (httpStatus: number, error: string, detail: string): ControlAnswer => ({ httpStatus, body: { error, detail } });

/** The control API. Whoever reaches the port may use it, so the port belongs on loopback or inside a closed network. */
export class ControlDesk {
  readonly #routes: { method: string; path: RegExp; handler: Handler }[];

  constructor(private readonly simulator: Simulator) {
    this.#routes = [
      route('GET', 'health', () => ok({ status: 'ok' })),
      route('GET', 'summary', () => ok(this.#summary())),
      route('GET', 'deliveries', (call) => this.#deliveries(call)),
      route('GET', 'recipients/(.+)', ({ parameter }) => ok(this.#recipient(parameter))),
      route('GET', 'tokens/(.+)', ({ parameter }) => ok(this.#token(parameter))),
      route('GET', 'requests', ({ query }) => ok(this.#requests(query))),
      route('POST', 'reset', ({ body }) => {
        simulator.reset(resetSchema.parse(body ?? {}).keepRules);
        return ok({ reset: true });
      }),
      route('GET', 'config', () => ok(this.#configuration())),
      route('POST', 'config', ({ body }) => this.#configure(body)),
      route('POST', 'templates', ({ body }) => this.#addTemplates(body)),
      route('GET', 'rules', () => ok(simulator.rules.list())),
      route('POST', 'rules', ({ body }) => this.#addRules(body)),
      route('DELETE', 'rules', () => {
        simulator.rules.clear();
        return ok({ removed: true });
      }),
      route('DELETE', 'rules/(.+)', ({ parameter }) =>
        simulator.rules.remove(parameter)
          ? ok({ removed: true })
          : refused(404, 'unknown_rule', `There is no rule ${parameter}; GET /control/rules lists them.`),
      ),
      route('GET', 'magic-recipients', () =>
        ok(MAGIC_RECIPIENTS.map(({ digits, what }) => ({ digits, example: `+120255501${digits}`, what }))),
      ),
      route('POST', 'webhooks/pause', () => {
        simulator.webhooks.pause();
        return ok({ paused: true });
      }),
      route('POST', 'webhooks/resume', () => {
        simulator.webhooks.resume();
        return ok({ paused: false });
      }),
      route('POST', 'webhooks/flush', async ({ body }) =>
        ok({ drained: await simulator.webhooks.flush(flushSchema.parse(body ?? {}).deadlineMs) }),
      ),
      route('POST', 'webhooks/bad-signatures', ({ body }) => {
        simulator.webhooks.sendBadSignatures(badSignaturesSchema.parse(body ?? {}).count);
        return ok({ ordered: true });
      }),
      route('POST', 'send-webhook', ({ body }) => this.#sendWebhook(body)),
      route('POST', 'send-status', ({ body }) => this.#sendStatus(body)),
    ];
  }

  async handle(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
    const answer = await this.#answer(request, response, text);
    if (answer === 'streamed' || response.destroyed) return;
    response.writeHead(answer.httpStatus, { 'content-type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(answer.body));
  }

  async #answer(request: IncomingMessage, response: ServerResponse, text: string): Promise<ControlAnswer> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://simulator');
    try {
      for (const { method, path, handler } of this.#routes) {
        const match = method === request.method ? path.exec(pathname) : null;
        if (!match) continue;
        const body: unknown = text === '' ? undefined : JSON.parse(text);
        return await handler({ parameter: decodeURIComponent(match[1] ?? ''), query: searchParams, body, response });
      }
      return refused(
        404,
        'unknown_path',
        `Nothing is at ${request.method} ${pathname}; the simulator's README lists the control API.`,
      );
    } catch (error) {
      if (error instanceof z.ZodError) {
        const problems = error.issues.map((issue) => ({ path: issue.path.join('.'), message: issue.message }));
        return {
          httpStatus: 422,
          body: { error: 'invalid', detail: 'Nothing was changed. Correct the members listed.', problems },
        };
      }
      if (error instanceof SyntaxError) return refused(400, 'not_json', `The body is not JSON: ${error.message}`);
      return refused(500, 'fault', error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  #summary(): SimulatorSummary {
    return { ...this.simulator.oracle.summary(), webhooks: this.simulator.webhooks.summary() };
  }

  async #deliveries({ query, response }: ControlCall): Promise<ControlAnswer> {
    await streamDeliveries(this.simulator, filterFrom(query), response);
    return 'streamed';
  }

  #recipient(name: string): RecipientReport {
    const recipient = name.startsWith('+') ? name.slice(1) : name;
    const deliveries = deliveriesOf(this.simulator, { recipient, limit: 1000 });
    return { recipient, count: this.simulator.oracle.recipientCount(recipient), deliveries };
  }

  #token(token: string): TokenReport {
    const deliveries = deliveriesOf(this.simulator, { token, limit: 1000 });
    return { token, count: this.simulator.oracle.tokenCount(token), deliveries };
  }

  #requests(query: URLSearchParams): SeenRequest[] {
    const limit = Number(query.get('limit') ?? 1000) || 1000;
    const phoneNumberId = query.get('phoneNumberId');
    const kept = this.simulator.oracle
      .requests()
      .filter((request) => phoneNumberId === null || request.phoneNumberId === phoneNumberId);
    return kept.slice(-limit).map(({ wallMicros, phoneNumberId: id, answer, body }) => ({
      at: instant(wallMicros),
      phoneNumberId: id,
      answer,
      body: parsedOrText(body),
    }));
  }

  #configuration(): ConfigurationReport {
    const { settings, numbers, templates, rules } = this.simulator;
    return {
      settings,
      numbers: [...numbers.values()].map((number) => number.configuration),
      templates: [...templates.values()],
      rules: rules.list(),
    };
  }

  async #configure(body: unknown): Promise<ControlAnswer> {
    const result = await this.simulator.configure(configurationSchema.parse(body), true);
    if (!result.ok) {
      return refused(
        422,
        'webhook_verification_failed',
        `Nothing was changed: ${result.url}: ${result.reason}. Start the receiver, or set "verify": false.`,
      );
    }
    return ok(this.#configuration());
  }

  #addTemplates(body: unknown): ControlAnswer {
    const templates = z.array(templateSchema).parse(Array.isArray(body) ? body : [body]);
    for (const template of templates) this.simulator.templates.set(templateKey(template.name, template.language), template);
    return ok({ registered: templates.length });
  }

  #addRules(body: unknown): ControlAnswer {
    const rules = z.array(ruleSchema).parse(Array.isArray(body) ? body : [body]);
    return ok({ ids: rules.map((rule) => this.simulator.rules.add(rule)) });
  }

  async #sendWebhook(body: unknown): Promise<ControlAnswer> {
    const order = rawWebhookSchema.parse(body);
    const subscription = this.simulator.settings.webhook;
    const url = order.url ?? subscription?.url;
    const appSecret = order.appSecret ?? subscription?.appSecret;
    if (url === undefined) return refused(409, 'no_subscription', 'Name a url, or configure a webhook first.');
    if (appSecret === undefined && order.signature !== 'none')
      return refused(409, 'no_secret', 'Name an appSecret, or ask for signature "none".');
    return ok(await sendRawWebhook({ ...order, url, appSecret: appSecret ?? '' }));
  }

  #sendStatus(body: unknown): ControlAnswer {
    const emitted = emitStatus(this.simulator, statusOrderSchema.parse(body));
    return emitted.ok ? ok({ messageId: emitted.messageId }) : refused(emitted.httpStatus, emitted.error, emitted.detail);
  }
}

function route(method: string, path: string, handler: Handler): { method: string; path: RegExp; handler: Handler } {
  return { method, path: new RegExp(`^/control/${path}$`), handler };
}

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
