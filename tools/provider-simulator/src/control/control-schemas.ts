import { z } from 'zod';
import { STATUS_NAMES } from '../webhooks/status-names';

export const rawWebhookSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).optional(),
  appSecret: z.string().min(1).optional(),
  body: z.unknown(),
  signature: z.enum(['valid', 'wrong', 'none']).default('valid'),
  headers: z.record(z.string(), z.string()).default({}),
});

export const statusOrderSchema = z
  .strictObject({
    token: z.string().optional(),
    messageId: z.string().optional(),
    recipient: z.string().optional(),
    status: z.enum(STATUS_NAMES),
    code: z.int().optional(),
    timestampShiftSeconds: z.int().optional(),
  })
  .refine((order) => [order.token, order.messageId, order.recipient].filter((name) => name !== undefined).length === 1, {
    message: 'name the delivery by exactly one of token, messageId and recipient',
  });

export const resetSchema = z.strictObject({ keepRules: z.boolean().default(false) });
export const flushSchema = z.strictObject({ deadlineMs: z.number().min(0).max(120_000).default(10_000) });
export const badSignaturesSchema = z.strictObject({ count: z.int().min(1).max(100_000).default(1) });
