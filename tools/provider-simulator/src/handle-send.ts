import type { Exchange } from './exchange';
import { graphErrorBody, graphErrorStatus, type GraphRefusal } from './graph/graph-errors';
import { readSendRequest, type SendRequest } from './graph/read-send-request';
import { missingTemplate, templateKey, templateRefusal } from './graph/template-definitions';
import type { AnswerKind } from './oracle/delivery-log';
import { planSend, type SendPlan } from './rules/plan-send';
import type { SimulatedNumber } from './simulated-number';
import type { Simulator } from './simulator';
import { TraceIds } from './trace-ids';

export interface SendCall {
  phoneNumberId: string;
  accessToken: string | undefined;
  /** When the request reached this process. */
  monotonicMicros: number;
  wallMicros: number;
  body: string;
  exchange: Exchange;
}

/** Runs something when a time on the monotonic clock has come; at once when it has passed. */
export type RunAt = (dueMs: number, action: () => void) => void;

/** A send whose first webhook must come before its answer does not wait longer than this for a receiver that is down. */
const WEBHOOK_FIRST_PATIENCE_MS = 2000;

const HTML_PAGE = '<html><head><title>Bad gateway</title></head><body><h1>Something went wrong</h1><hr>proxy</body></html>\n';

/** `POST /{version}/{phone number id}/messages`. */
export class SendDesk {
  readonly #traces = new TraceIds();

  constructor(
    private readonly simulator: Simulator,
    private readonly runAt: RunAt,
  ) {}

  handle(call: SendCall): void {
    const { simulator } = this;
    const { oracle } = simulator;
    oracle.received();
    const number = simulator.numberFor(call.phoneNumberId);
    if (!number) {
      const refusal: GraphRefusal = {
        code: 100,
        subcode: 33,
        type: 'GraphMethodException',
        title: `Unsupported post request. Object with ID '${call.phoneNumberId}' does not exist, cannot be loaded due to missing permissions, or does not support this operation`,
      };
      return this.#refuse(call, undefined, refusal);
    }
    number.ledger.arrived(call.monotonicMicros, call.wallMicros);

    const authRefusal = accessRefusal(number, call.accessToken);
    if (authRefusal) return this.#refuse(call, number, authRefusal);

    const read = readSendRequest(parseJson(call.body));
    if ('refusal' in read) return this.#refuse(call, number, read.refusal);
    if (!number.ledger.passesRate(call.monotonicMicros)) return this.#refuse(call, number, { code: 130429 });

    const templateProblem = this.#templateRefusal(read.request);
    if (templateProblem) return this.#refuse(call, number, templateProblem);
    this.#carryOut(call, number, read.request, this.#plan(call, number, read.request));
  }

  #plan(call: SendCall, number: SimulatedNumber, request: SendRequest): SendPlan {
    const { simulator } = this;
    const ruled = simulator.rules.actionsFor({
      phoneNumberId: call.phoneNumberId,
      recipient: request.recipient,
      token: request.token,
      type: request.type,
      template: request.template,
      accessToken: call.accessToken!,
    });
    const { webhooks } = simulator.settings;
    const actions = [...simulator.magicActions(request.recipient), ...ruled];
    const plan = planSend(actions, webhooks, number.identity.wabaId, simulator.random);
    if (webhooks.webhookFirstShare > 0 && simulator.random() < webhooks.webhookFirstShare) plan.webhookFirst = true;
    return plan;
  }

  #carryOut(call: SendCall, number: SimulatedNumber, request: SendRequest, plan: SendPlan): void {
    const { oracle } = this.simulator;
    const answerName = answerNameOf(plan);
    if (plan.answer.kind === 'accepted') oracle.accepted();
    else oracle.rejected(answerName);
    this.#keep(call, answerName);
    const dueMs = call.monotonicMicros / 1000 + number.latency() + plan.extraDelayMs;
    if (!plan.delivered) return this.#answer(call, number, request, plan, '', dueMs);

    const sequence = oracle.delivered({
      monotonicMicros: call.monotonicMicros,
      wallMicros: call.wallMicros,
      phoneNumberId: call.phoneNumberId,
      recipient: request.recipient,
      token: request.token,
      answer: plan.answer.kind satisfies AnswerKind,
      content: request.template ? templateKey(request.template.name, request.template.language) : request.type,
    });
    number.ledger.delivered(call.monotonicMicros);
    const messageId = this.simulator.messageIdOf(request.recipient, sequence);
    const answer = (): void => this.#answer(call, number, request, plan, messageId, dueMs);
    const { subscription } = number;
    if (!subscription) return answer();
    const message = {
      sequence,
      messageId,
      recipient: request.recipient,
      isUserId: request.isUserId,
      token: request.token,
      category: this.#category(request),
      number: number.identity,
      subscription,
      journey: plan.journey,
      copies: plan.copies,
    };
    if (!plan.webhookFirst) {
      this.simulator.webhooks.start(message);
      return answer();
    }
    let answered = false;
    const answerOnce = (): void => {
      if (!answered) answer();
      answered = true;
    };
    this.simulator.webhooks.startWithWebhookFirst(message, answerOnce);
    this.runAt(call.monotonicMicros / 1000 + WEBHOOK_FIRST_PATIENCE_MS, answerOnce);
  }

  #answer(call: SendCall, number: SimulatedNumber, request: SendRequest, plan: SendPlan, messageId: string, dueMs: number): void {
    const { exchange } = call;
    const { answer } = plan;
    switch (answer.kind) {
      case 'accepted':
        return this.runAt(dueMs, () =>
          exchange.reply(200, this.#headers(number, plan.headers), acceptedBody(request, messageId, answer.messageStatus)),
        );
      case 'graph_error':
        return this.runAt(dueMs, () =>
          exchange.reply(
            graphErrorStatus(answer.refusal),
            this.#headers(number, plan.headers),
            graphErrorBody(answer.refusal, this.#traces.next()),
          ),
        );
      case 'http_error': {
        const html = answer.body === 'html';
        const headers = [...plan.headers, ...(html ? ['content-type', 'text/html; charset=utf-8'] : [])];
        return this.runAt(dueMs, () => exchange.reply(answer.httpStatus, headers, html ? HTML_PAGE : ''));
      }
      case 'truncated':
        return this.runAt(dueMs, () =>
          exchange.replyHalf(200, this.#headers(number, plan.headers), acceptedBody(request, messageId, 'accepted')),
        );
      case 'dropped':
        return this.runAt(dueMs, () => exchange.drop(answer.how));
      case 'hung':
        return;
      default:
        return answer satisfies never;
    }
  }

  #refuse(call: SendCall, number: SimulatedNumber | undefined, refusal: GraphRefusal): void {
    const { oracle } = this.simulator;
    oracle.rejected(String(refusal.code));
    this.#keep(call, String(refusal.code));
    const dueMs = call.monotonicMicros / 1000 + (number ? number.latency() : 0);
    this.runAt(dueMs, () =>
      call.exchange.reply(graphErrorStatus(refusal), this.#headers(number, []), graphErrorBody(refusal, this.#traces.next())),
    );
  }

  #keep({ wallMicros, phoneNumberId, body }: SendCall, answer: string): void {
    this.simulator.oracle.keepRequest({ wallMicros, phoneNumberId, answer, body });
  }

  #headers(number: SimulatedNumber | undefined, extra: readonly string[]): string[] {
    const headers = [
      'content-type',
      'application/json; charset=UTF-8',
      'facebook-api-version',
      'v25.0',
      'x-fb-request-id',
      this.#traces.next(),
      'x-fb-trace-id',
      this.#traces.next(),
    ];
    if (number && !extra.includes('x-business-use-case-usage')) headers.push('x-business-use-case-usage', number.usage);
    headers.push(...extra);
    return headers;
  }

  #templateRefusal({ template }: SendRequest): GraphRefusal | undefined {
    if (!template) return undefined;
    const definition = this.simulator.templates.get(templateKey(template.name, template.language));
    if (definition) return templateRefusal(definition, template.components);
    return this.simulator.settings.strictTemplates ? missingTemplate(template.name, template.language) : undefined;
  }

  #category({ template }: SendRequest): string {
    if (!template) return 'service';
    const definition = this.simulator.templates.get(templateKey(template.name, template.language));
    return definition?.category.toLowerCase() ?? 'marketing';
  }
}

function accessRefusal(number: SimulatedNumber, accessToken: string | undefined): GraphRefusal | undefined {
  if (!accessToken) return { code: 104 };
  const { accessToken: expected } = number.configuration;
  if (!expected || expected === accessToken) return undefined;
  return { code: 190, subcode: 467, title: 'Invalid OAuth access token - Cannot parse access token' };
}

/** `message_status` is told for templates only. */
function acceptedBody(request: SendRequest, messageId: string, messageStatus: string): string {
  const contact = request.isUserId ? `"user_id":"${request.recipient}"` : `"wa_id":"${request.recipient}"`;
  const status = request.template ? `,"message_status":${JSON.stringify(messageStatus)}` : '';
  return `{"messaging_product":"whatsapp","contacts":[{"input":${JSON.stringify(request.input)},${contact}}],"messages":[{"id":"${messageId}"${status}}]}`;
}

function answerNameOf({ answer }: SendPlan): string {
  switch (answer.kind) {
    case 'accepted':
      return answer.messageStatus;
    case 'graph_error':
      return String(answer.refusal.code);
    case 'http_error':
      return `http_${answer.httpStatus}`;
    case 'truncated':
    case 'dropped':
    case 'hung':
      return answer.kind;
    default:
      return answer satisfies never;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
