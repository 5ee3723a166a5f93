import { z } from 'zod';

export const numberName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, '1 to 64 lower-case letters, digits, "_" or "-"')
  .describe('Your name for the number');

/** Meta's ids are digits; leading zeros do not occur. */
const metaId = z.string().regex(/^[1-9]\d{0,31}$/, 'digits');

export const putNumberBody = z.strictObject({
  kind: z.enum(['whatsapp']),
  provider: z.strictObject({
    name: z.enum(['whatsapp_cloud']),
    numberId: metaId.describe("Meta's phone_number_id"),
    wabaId: metaId.optional(),
    appId: metaId.optional(),
  }),
  ratePerSecond: z
    .number()
    .min(0.01)
    .max(1000)
    .optional()
    .describe('Messages a second at most; default 50 for WhatsApp, whose 80 count incoming ones too'),
  credentials: z
    .strictObject({
      accessToken: z
        .string()
        .max(4096)
        .regex(/^[\x21-\x7e]+$/, 'visible ASCII characters, as an HTTP header takes them'),
    })
    .optional()
    .describe('Required the first time; never comes back. New ones end an account hold'),
  webhook: z
    .strictObject({
      appSecret: z.string().min(1).max(512).describe('Signs what the provider posts to us'),
      verifyToken: z.string().min(1).max(512).describe('What the provider shows when it checks the address'),
    })
    .optional(),
});
export type PutNumberBody = z.infer<typeof putNumberBody>;

export const DEFAULT_RATE_PER_SECOND = { whatsapp: 50 } as const;
