import { z } from 'zod';
import type { GraphRefusal } from './graph-errors';

const count = z.int().min(0).max(100);

/** What the simulator must know of a template to refuse what Meta would refuse. */
export const templateSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9_]{1,512}$/, 'lower case letters, digits and underscores'),
  language: z.string().min(2).max(15),
  category: z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION']).default('MARKETING'),
  status: z.enum(['APPROVED', 'PENDING', 'REJECTED', 'PAUSED', 'DISABLED']).default('APPROVED'),
  /** Parameters of the header: 0 or 1. */
  header: count.default(0),
  /** Parameters of the body: how many (positional), or their names (named). */
  body: z.union([count, z.array(z.string().min(1)).max(100)]).default(0),
  /** Zero-based positions of the buttons that need a parameter. */
  dynamicButtons: z.array(z.int().min(0).max(9)).default([]),
});

export type TemplateDefinition = z.infer<typeof templateSchema>;
export type TemplateInput = z.input<typeof templateSchema>;

export interface SentComponent {
  type: string;
  index?: string;
  parameters: { name?: string }[];
}

export function templateKey(name: string, language: string): string {
  return `${name}/${language}`;
}

/** Undefined when the components fit the definition. */
export function templateRefusal(definition: TemplateDefinition, components: readonly SentComponent[]): GraphRefusal | undefined {
  switch (definition.status) {
    case 'APPROVED':
      break;
    case 'PAUSED':
      return { code: 132015 };
    case 'DISABLED':
      return { code: 132016 };
    case 'PENDING':
    case 'REJECTED':
      return missingTemplate(definition.name, definition.language);
    default:
      return definition.status satisfies never;
  }
  const header = parametersOf(components, 'header');
  if (header.length !== definition.header) return wrongCount('header', header.length, definition.header);
  const body = parametersOf(components, 'body');
  const expected = typeof definition.body === 'number' ? definition.body : definition.body.length;
  if (body.length !== expected) return wrongCount('body', body.length, expected);
  if (typeof definition.body !== 'number') {
    const given = new Set(body.map((parameter) => parameter.name));
    const missing = definition.body.find((name) => !given.has(name));
    if (missing !== undefined) return { code: 132012, details: `body: parameter name (${missing}) is missing or empty` };
  }
  for (const index of definition.dynamicButtons) {
    const sent = components.find((component) => component.type === 'button' && Number(component.index) === index);
    if (!sent || sent.parameters.length === 0) {
      return { code: 131008, details: `buttons: Button at index ${index} requires a parameter` };
    }
  }
  return undefined;
}

export function missingTemplate(name: string, language: string): GraphRefusal {
  return { code: 132001, details: `template name (${name}) does not exist in ${language}` };
}

function parametersOf(components: readonly SentComponent[], type: string): { name?: string }[] {
  return components.find((component) => component.type === type)?.parameters ?? [];
}

function wrongCount(where: string, given: number, expected: number): GraphRefusal {
  return {
    code: 132000,
    details: `${where}: number of localizable_params (${given}) does not match the expected number of params (${expected})`,
  };
}

/** One entry of `GET /{waba}/message_templates`. */
export function templateNode(definition: TemplateDefinition, id: string): Record<string, unknown> {
  const named = typeof definition.body !== 'number';
  const names =
    typeof definition.body === 'number' ? Array.from({ length: definition.body }, (_, i) => String(i + 1)) : definition.body;
  const components: object[] = [];
  if (definition.header > 0) components.push({ type: 'HEADER', format: 'TEXT', text: '{{1}}' });
  components.push({ type: 'BODY', text: [definition.name, ...names.map((name) => `{{${name}}}`)].join(' ') });
  if (definition.dynamicButtons.length > 0) {
    const last = Math.max(...definition.dynamicButtons);
    const buttons = Array.from({ length: last + 1 }, (_, index) =>
      definition.dynamicButtons.includes(index)
        ? { type: 'URL', text: `Button ${index}`, url: 'https://example.com/{{1}}' }
        : { type: 'QUICK_REPLY', text: `Button ${index}` },
    );
    components.push({ type: 'BUTTONS', buttons });
  }
  return {
    name: definition.name,
    parameter_format: named ? 'NAMED' : 'POSITIONAL',
    components,
    language: definition.language,
    status: definition.status,
    category: definition.category,
    id,
  };
}
