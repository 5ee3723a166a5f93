import { z } from 'zod';
import type { OpenAPIObject } from '@nestjs/swagger';
import { PROBLEMS, type ProblemCode } from '../problem/problem-table';
import { registeredEndpoints, type EndpointSpec } from './endpoint';

const ALWAYS: readonly ProblemCode[] = [
  'unauthorized',
  'key_in_query',
  'unknown_member',
  'request_invalid',
  'internal',
  'unavailable',
];
const WITH_BODY: readonly ProblemCode[] = ['body_unparseable', 'request_stalled', 'body_too_large', 'media_type_unsupported'];
const NAMED: readonly ProblemCode[] = ['idempotency_key_reused', 'request_in_progress'];

const problemSchema = z.toJSONSchema(
  z.object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    code: z.string(),
    detail: z.string(),
    instance: z.string(),
    errors: z
      .array(
        z.object({
          pointer: z.string().optional(),
          parameter: z.string().optional(),
          header: z.string().optional(),
          code: z.string(),
          detail: z.string(),
          given: z.unknown().optional(),
          allowed: z.unknown().optional(),
          hint: z.string().optional(),
        }),
      )
      .optional(),
    errorsOmitted: z.number().int().optional(),
  }),
);

/** The documentation, from the very schemas that validate. Built once, when all controllers are loaded. */
export function openApiDocument(version: string): OpenAPIObject {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const spec of registeredEndpoints()) {
    const path = spec.path.replace(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[spec.method.toLowerCase()] = operation(spec);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Punctual', version, description: 'Sends messages at the moment people meant.' },
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'punctual_test_... or punctual_live_...' },
        operator: { type: 'http', scheme: 'bearer', description: 'The key of who runs the installation' },
      },
      schemas: { Problem: problemSchema as never },
    },
  } as OpenAPIObject;
}

function operation(spec: EndpointSpec): Record<string, unknown> {
  const writes = spec.method === 'POST' || spec.method === 'PATCH';
  const scope = typeof spec.access === 'object' ? spec.access.scope : null;
  return {
    operationId: spec.operationId,
    tags: [spec.tag],
    summary: spec.summary,
    ...(scope ? { description: `Needs the scope \`${scope}\`.` } : {}),
    security: [spec.access === 'operator' ? { operator: [] } : { key: [] }],
    parameters: [
      ...parameters(spec.params, 'path'),
      ...parameters(spec.query, 'query'),
      ...(writes ? [header('Idempotency-Key', 'A repeat with the same key gets the same answer, for 24 hours')] : []),
      ...(spec.ifMatch ? [{ ...header('If-Match', 'ETag of the version that is changed'), required: true }] : []),
      header('X-Correlation-Id', 'Kept with what the request makes, and echoed'),
    ],
    ...(spec.body || spec.streamed ? { requestBody: requestBody(spec) } : {}),
    responses: responses(spec),
  };
}

function requestBody(spec: EndpointSpec): Record<string, unknown> {
  const content: Record<string, unknown> = {};
  if (spec.body) content['application/json'] = { schema: jsonSchema(spec.body, 'input') };
  for (const type of spec.streamed ?? []) content[type] = { schema: { type: 'string' } };
  return { required: !spec.bodyOptional, content };
}

function responses(spec: EndpointSpec): Record<string, unknown> {
  const answers: Record<string, unknown> = {};
  for (const { status, description, schema } of spec.success) {
    answers[status] = { description, content: { 'application/json': { schema: jsonSchema(schema, 'output') } } };
  }
  const codes = [
    ...ALWAYS,
    ...(typeof spec.access === 'object' ? (['scope_missing'] as const) : []),
    ...(spec.body ? WITH_BODY : []),
    ...(spec.method === 'POST' || spec.method === 'PATCH' ? NAMED : []),
    ...(spec.ifMatch ? (['precondition_required'] as const) : []),
    ...spec.refusals,
  ];
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set(codes)) byStatus.set(PROBLEMS[code][0], [...(byStatus.get(PROBLEMS[code][0]) ?? []), code]);
  for (const [status, named] of [...byStatus].sort(([a], [b]) => a - b)) {
    answers[status] = {
      description: named.map((code) => `\`${code}\`: ${PROBLEMS[code][1]}`).join('. '),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    };
  }
  return answers;
}

function parameters(schema: z.ZodType | undefined, place: 'path' | 'query'): unknown[] {
  if (!schema) return [];
  // Of a query the values after reading: a parameter that may repeat is a list, not "string or list".
  const { properties = {}, required = [] } = jsonSchema(schema, place === 'query' ? 'output' : 'input') as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description ? { description } : {}),
    schema: rest,
  }));
}

function header(name: string, description: string): Record<string, unknown> {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Record<string, unknown>;
  return rest;
}
