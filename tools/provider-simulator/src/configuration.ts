import { z } from 'zod';
import { templateSchema } from './graph/template-definitions';
import { ruleSchema } from './rules/actions';
import { latencySchema } from './timing/latency';

const share = z.number().min(0).max(1);
const milliseconds = z.number().min(0).max(86_400_000);

/** Where status webhooks go, as an app's webhook subscription says it. */
export const subscriptionSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  appSecret: z.string().min(1),
  verifyToken: z.string().min(1).optional(),
  /** Ask the endpoint for its challenge first and refuse the subscription when it does not answer. Default true at the control API, false in the start configuration: there the receiver may not run yet. */
  verify: z.boolean().optional(),
});

export const numberSchema = z.strictObject({
  phoneNumberId: z.string().regex(/^[0-9]{1,32}$/, 'digits'),
  displayPhoneNumber: z
    .string()
    .regex(/^[0-9]{5,15}$/, 'digits')
    .optional(),
  wabaId: z
    .string()
    .regex(/^[0-9]{1,32}$/, 'digits')
    .optional(),
  /** Requests let through in any sliding 990 ms; null: no limit. */
  ratePerSecond: z.int().min(1).max(100_000).nullable().optional(),
  latency: latencySchema.optional(),
  /** Without one, every bearer token is good. */
  accessToken: z.string().min(1).nullable().optional(),
  /** Instead of the common subscription; null: no webhooks for this number. */
  webhook: subscriptionSchema.nullable().optional(),
  health: z.enum(['AVAILABLE', 'LIMITED', 'BLOCKED']).optional(),
  healthErrors: z.array(z.strictObject({ code: z.int(), description: z.string(), solution: z.string().optional() })).optional(),
  throughput: z.enum(['STANDARD', 'HIGH', 'NOT_APPLICABLE']).optional(),
  messagingLimit: z.enum(['TIER_50', 'TIER_250', 'TIER_2K', 'TIER_10K', 'TIER_100K', 'TIER_UNLIMITED']).optional(),
});

const delaysSchema = z.strictObject({
  sent: latencySchema.optional(),
  /** After sent. */
  delivered: latencySchema.optional(),
  /** After delivered. */
  read: latencySchema.optional(),
  failed: latencySchema.optional(),
  /** How long a held message is held. */
  held: latencySchema.optional(),
});

export const webhookBehaviourSchema = z.strictObject({
  delays: delaysSchema.optional(),
  readShare: share.optional(),
  failShare: share.optional(),
  failCode: z.int().optional(),
  duplicateShare: share.optional(),
  /** This share of the webhooks is kept back by `reorderDelay`, so that later statuses overtake them. */
  reorderShare: share.optional(),
  reorderDelay: latencySchema.optional(),
  webhookFirstShare: share.optional(),
  badSignatureShare: share.optional(),
  batchSize: z.int().min(1).max(1000).optional(),
  /** How long a status waits for company. */
  batchWaitMs: milliseconds.optional(),
  /** One change with many statuses, or one change for each status. */
  batchShape: z.enum(['statuses', 'changes']).optional(),
  concurrency: z.int().min(1).max(256).optional(),
  timeoutMs: milliseconds.min(1).optional(),
  /** The last one repeats. */
  retryDelaysMs: z.array(milliseconds).min(1).optional(),
  maxAttempts: z.int().min(1).max(10_000).optional(),
  /** `value.contacts` beside statuses, as since the roll-out of business-scoped user ids. */
  contacts: z.boolean().optional(),
  profileName: z.string().max(200).optional(),
  /** The `conversation` object of webhook versions up to v23. */
  legacyConversation: z.boolean().optional(),
});

export const configurationSchema = z.strictObject({
  /** Refuse phone number ids that were not configured with 100/33. */
  strictNumbers: z.boolean().optional(),
  /** Refuse templates that were not registered with 132001. */
  strictTemplates: z.boolean().optional(),
  magicRecipients: z.boolean().optional(),
  latency: latencySchema.optional(),
  /** For numbers that name none; null: no limit. */
  ratePerSecond: z.int().min(1).max(100_000).nullable().optional(),
  wabaId: z
    .string()
    .regex(/^[0-9]{1,32}$/)
    .optional(),
  numbers: z.array(numberSchema).max(10_000).optional(),
  templates: z.array(templateSchema).max(10_000).optional(),
  rules: z.array(ruleSchema).max(1000).optional(),
  webhook: subscriptionSchema.nullable().optional(),
  webhooks: webhookBehaviourSchema.optional(),
  seed: z.int().optional(),
});

export type Subscription = z.infer<typeof subscriptionSchema>;
export type NumberConfiguration = z.infer<typeof numberSchema>;
export type Configuration = z.infer<typeof configurationSchema>;
export type ConfigurationInput = z.input<typeof configurationSchema>;

type Complete<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };
export type WebhookDelays = Complete<z.infer<typeof delaysSchema>>;
export type WebhookBehaviour = Complete<Omit<z.infer<typeof webhookBehaviourSchema>, 'delays'>> & { delays: WebhookDelays };

export const DEFAULT_WEBHOOK_BEHAVIOUR: WebhookBehaviour = {
  delays: {
    sent: { kind: 'lognormal', p50Ms: 60, p99Ms: 400 },
    delivered: { kind: 'lognormal', p50Ms: 150, p99Ms: 1500 },
    read: { kind: 'lognormal', p50Ms: 1000, p99Ms: 8000 },
    failed: { kind: 'lognormal', p50Ms: 150, p99Ms: 1000 },
    held: { kind: 'fixed', ms: 3000 },
  },
  readShare: 0.5,
  failShare: 0,
  failCode: 131026,
  duplicateShare: 0,
  reorderShare: 0,
  reorderDelay: { kind: 'uniform', minMs: 50, maxMs: 1000 },
  webhookFirstShare: 0,
  badSignatureShare: 0,
  batchSize: 100,
  batchWaitMs: 10,
  batchShape: 'statuses',
  concurrency: 16,
  timeoutMs: 10_000,
  retryDelaysMs: [0, 250, 1000, 2000, 5000, 15_000, 60_000],
  maxAttempts: 60,
  contacts: false,
  profileName: 'Zoë Müller 😀',
  legacyConversation: false,
};

export interface Settings {
  strictNumbers: boolean;
  strictTemplates: boolean;
  magicRecipients: boolean;
  latency: z.infer<typeof latencySchema>;
  ratePerSecond: number | null;
  wabaId: string;
  webhook: Subscription | null;
  webhooks: WebhookBehaviour;
}

/** 80 a second is what Meta gives a number at first; 20 ms is a Graph answer from nearby. */
export const DEFAULT_SETTINGS: Settings = {
  strictNumbers: false,
  strictTemplates: false,
  magicRecipients: true,
  latency: { kind: 'fixed', ms: 20 },
  ratePerSecond: 80,
  wabaId: '900100200300400',
  webhook: null,
  webhooks: DEFAULT_WEBHOOK_BEHAVIOUR,
};

/** What is left out stays as it was. */
export function mergeSettings(before: Settings, change: Configuration): Settings {
  const { delays, ...behaviour } = change.webhooks ?? {};
  const { strictNumbers, strictTemplates, magicRecipients, latency, ratePerSecond, wabaId, webhook } = change;
  return {
    ...withoutUndefined(before, { strictNumbers, strictTemplates, magicRecipients, latency, ratePerSecond, wabaId, webhook }),
    webhooks: {
      ...withoutUndefined(before.webhooks, behaviour),
      delays: withoutUndefined(before.webhooks.delays, delays ?? {}),
    },
  };
}

function withoutUndefined<T extends object>(before: T, change: { [K in keyof T]?: T[K] | undefined }): T {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}
