import { RequestMapping, RequestMethod } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Scope } from '../keys/api-key';
import type { ProblemCode } from '../problem/problem-table';

type Schema = z.ZodType | undefined;

/**
 * All that is said about an endpoint, once: its route, its validation and its documentation come from here.
 * Path parameters are written `:id`.
 */
export interface EndpointSpec<P extends Schema = Schema, Q extends Schema = Schema, B extends Schema = Schema> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  path: string;
  operationId: string;
  tag: string;
  summary: string;
  access: { scope: Scope } | 'any_key' | 'operator';
  params?: P;
  query?: Q;
  body?: B;
  /** The body may be left out. */
  bodyOptional?: boolean;
  /** Media types whose body the handler reads from the socket itself. */
  streamed?: readonly string[];
  success: ReadonlyArray<{ status: number; description: string; schema: z.ZodType }>;
  /** Beside those that every endpoint can answer. */
  refusals: readonly ProblemCode[];
  /** `required`: 428 without it. */
  ifMatch?: 'required';
}

const REGISTERED = new Map<string, EndpointSpec>();

export function registeredEndpoints(): EndpointSpec[] {
  return [...REGISTERED.values()];
}

/** The endpoint that a request was routed to; undefined for what is none, such as the documentation. */
export function endpointOf(request: FastifyRequest): EndpointSpec | undefined {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  return REGISTERED.get(`${method} ${request.routeOptions.url ?? ''}`);
}

/** Routes the method and enters the endpoint into the documentation. */
export function Endpoint(spec: EndpointSpec): MethodDecorator {
  REGISTERED.set(`${spec.method} ${spec.path}`, spec);
  return RequestMapping({ path: spec.path, method: RequestMethod[spec.method] });
}

/** Keeps the types of the schemas. */
export function endpoint<P extends Schema = undefined, Q extends Schema = undefined, B extends Schema = undefined>(
  spec: EndpointSpec<P, Q, B>,
): EndpointSpec<P, Q, B> {
  return spec;
}
