import type { SimulatedNumber } from '../simulated-number';
import { templateNode, type TemplateDefinition } from './template-definitions';

type Health = 'AVAILABLE' | 'LIMITED' | 'BLOCKED';

/** `GET /{phone number id}?fields=...`. Fields that a real number has and we don't are left out, as Graph leaves out empty ones. */
export function phoneNumberNode(number: SimulatedNumber, fields: readonly string[]): Record<string, unknown> {
  const { configuration, identity } = number;
  const all: Record<string, () => unknown> = {
    verified_name: () => 'Simulated Business',
    display_phone_number: () => `+${identity.displayPhoneNumber}`,
    quality_rating: () => 'GREEN',
    status: () => 'CONNECTED',
    throughput: () => ({ level: configuration.throughput ?? 'STANDARD' }),
    whatsapp_business_manager_messaging_limit: () => configuration.messagingLimit ?? 'TIER_100K',
    health_status: () => healthStatus(number),
  };
  const wanted = fields.length > 0 ? fields : ['verified_name', 'display_phone_number', 'quality_rating', 'throughput'];
  const node: Record<string, unknown> = {};
  for (const field of wanted) {
    const value = all[field]?.();
    if (value !== undefined) node[field] = value;
  }
  node.id = identity.phoneNumberId;
  return node;
}

function healthStatus({ configuration, identity }: SimulatedNumber): object {
  const health: Health = configuration.health ?? 'AVAILABLE';
  const errors = (configuration.healthErrors ?? []).map(({ code, description, solution }) => ({
    error_code: code,
    error_description: description,
    possible_solution: solution ?? 'Nothing is known to help.',
  }));
  const entity = (entityType: string, id: string, canSend: Health, withErrors: boolean): object => ({
    entity_type: entityType,
    id,
    can_send_message: canSend,
    ...(withErrors && errors.length > 0 ? { errors } : {}),
  });
  return {
    can_send_message: health,
    entities: [
      entity('PHONE_NUMBER', identity.phoneNumberId, health, true),
      entity('WABA', identity.wabaId, 'AVAILABLE', false),
      entity('BUSINESS', '500100200300400', 'AVAILABLE', false),
      entity('APP', '440000000000001', 'AVAILABLE', false),
    ],
  };
}

/** `GET /{WABA id}?fields=health_status`: the worst of its numbers. */
export function accountNode(wabaId: string, numbers: readonly SimulatedNumber[]): Record<string, unknown> {
  const order: Health[] = ['AVAILABLE', 'LIMITED', 'BLOCKED'];
  const worst = numbers.reduce((level, number) => Math.max(level, order.indexOf(number.configuration.health ?? 'AVAILABLE')), 0);
  return {
    health_status: {
      can_send_message: order[worst],
      entities: [{ entity_type: 'WABA', id: wabaId, can_send_message: order[worst] }],
    },
    id: wabaId,
  };
}

export interface TemplatePageQuery {
  name?: string;
  status?: string;
  limit: number;
  after?: string;
}

/** `GET /{WABA id}/message_templates`. Cursors are offsets in disguise. */
export function templatePage(templates: readonly TemplateDefinition[], query: TemplatePageQuery): object {
  const matching = templates.filter(
    (template) =>
      (query.name === undefined || template.name.includes(query.name)) &&
      (query.status === undefined || template.status === query.status),
  );
  const from = query.after === undefined ? 0 : Number(Buffer.from(query.after, 'base64url').toString('latin1')) || 0;
  const to = Math.min(from + query.limit, matching.length);
  const cursor = (offset: number): string => Buffer.from(String(offset), 'latin1').toString('base64url');
  return {
    data: matching.slice(from, to).map((template) => templateNode(template, templateId(template))),
    ...(matching.length > 0
      ? {
          paging: {
            cursors: { before: cursor(from), after: cursor(to) },
            ...(to < matching.length ? { next: `after=${cursor(to)}` } : {}),
          },
        }
      : {}),
  };
}

/** The same for the same name and language, in the range of Meta's ids. */
export function templateId({ name, language }: TemplateDefinition): string {
  let hash = 0;
  for (const unit of `${name}/${language}`) hash = (Math.imul(hash, 31) + unit.charCodeAt(0)) >>> 0;
  return String(810_000_000_000_000 + hash);
}
