import { z } from 'zod';
import { SCOPES } from '../keys/api-key';

export const createTenantBody = z.strictObject({
  name: z.string().min(1).max(200),
  mode: z.enum(['test', 'live']).describe('Test tenants reach only the provider simulator'),
});
export type CreateTenantBody = z.infer<typeof createTenantBody>;

export const createApiKeyBody = z.strictObject({
  name: z.string().min(1).max(200),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
});
export type CreateApiKeyBody = z.infer<typeof createApiKeyBody>;
