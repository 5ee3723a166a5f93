import { z } from 'zod';
import { numberName, putNumberBody } from '../request/number-request';
import { createApiKeyBody, createTenantBody } from '../request/tenant-request';
import { apiKeyAnswer, numberAnswer, tenantAnswer } from './answer-schemas';
import { endpoint } from './endpoint';

const tenantParams = z.object({ id: z.string().min(1).max(64) });

export const createTenantEndpoint = endpoint({
  method: 'POST',
  path: '/v1/admin/tenants',
  operationId: 'createTenant',
  tag: 'Operator',
  summary: 'Creates a tenant',
  access: 'operator',
  body: createTenantBody,
  success: [{ status: 201, description: 'The tenant', schema: tenantAnswer }],
  refusals: [],
});

export const readTenantEndpoint = endpoint({
  method: 'GET',
  path: '/v1/admin/tenants/:id',
  operationId: 'readTenant',
  tag: 'Operator',
  summary: 'A tenant',
  access: 'operator',
  params: tenantParams,
  success: [{ status: 200, description: 'The tenant', schema: tenantAnswer }],
  refusals: ['tenant_not_found'],
});

export const createTenantKeyEndpoint = endpoint({
  method: 'POST',
  path: '/v1/admin/tenants/:id/api-keys',
  operationId: 'createTenantApiKey',
  tag: 'Operator',
  summary: 'Creates a key for a tenant; it is shown once',
  access: 'operator',
  params: tenantParams,
  body: createApiKeyBody,
  success: [{ status: 201, description: 'The key', schema: apiKeyAnswer }],
  refusals: ['tenant_not_found'],
});

export const createApiKeyEndpoint = endpoint({
  method: 'POST',
  path: '/v1/api-keys',
  operationId: 'createApiKey',
  tag: 'Keys',
  summary: 'Creates another key of your tenant, with scopes that this key has; it is shown once',
  access: { scope: 'keys:write' },
  body: createApiKeyBody,
  success: [{ status: 201, description: 'The key', schema: apiKeyAnswer }],
  refusals: [],
});

const numberParams = z.object({ number: numberName });

export const putNumberEndpoint = endpoint({
  method: 'PUT',
  path: '/v1/numbers/:number',
  operationId: 'putNumber',
  tag: 'Numbers',
  summary: 'Registers a number, or changes it',
  access: { scope: 'numbers:write' },
  params: numberParams,
  body: putNumberBody,
  success: [
    { status: 201, description: 'Registered', schema: numberAnswer },
    { status: 200, description: 'Changed', schema: numberAnswer },
  ],
  refusals: ['number_taken'],
});

export const readNumberEndpoint = endpoint({
  method: 'GET',
  path: '/v1/numbers/:number',
  operationId: 'readNumber',
  tag: 'Numbers',
  summary: 'A number, with what was learned about it',
  access: { scope: 'numbers:read' },
  params: numberParams,
  success: [{ status: 200, description: 'The number', schema: numberAnswer }],
  refusals: ['number_not_found'],
});
