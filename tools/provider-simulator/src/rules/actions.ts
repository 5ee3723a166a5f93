import { z } from 'zod';
import { STATUS_NAMES } from '../webhooks/status-names';

const milliseconds = z.number().min(0).max(86_400_000);
/** Anything else would make node:http throw while it answers. */
const headerValue = z.string().regex(/^[\t\x20-\x7e]*$/, 'printable ASCII');
const graphCode = z.int().min(0).max(9_999_999);

/** One step of what a message goes through after the provider took it on; each begins when the one before has happened. */
export const journeyStepSchema = z.strictObject({
  status: z.enum(STATUS_NAMES),
  /** A number of milliseconds, or one of the configured delays. */
  after: z.union([milliseconds, z.enum(['sent', 'delivered', 'read', 'failed', 'held'])]),
  /** For `failed`: the Graph error code. */
  code: graphCode.optional(),
  /** Added to the timestamp inside the webhook, so that a late status can carry an early time. */
  timestampShiftSeconds: z.int().min(-2_592_000).max(2_592_000).optional(),
});

export type JourneyStep = z.infer<typeof journeyStepSchema>;

/** What a rule (or a magic recipient) does to a send. `delay`, `headers`, `journey` and `webhook_first` let it go on. */
export const actionSchema = z.discriminatedUnion('kind', [
  /** The Graph API refuses. `delivered: true` makes it a lie: the message goes out all the same. */
  z.strictObject({
    kind: z.literal('graph_error'),
    code: graphCode,
    httpStatus: z.int().min(400).max(599).optional(),
    subcode: z.int().optional(),
    title: z.string().max(1000).optional(),
    details: z.string().max(1000).optional(),
    transient: z.boolean().optional(),
    delivered: z.boolean().default(false),
    retryAfter: z.union([z.int().min(0), headerValue.max(64)]).optional(),
    regainMinutes: z.int().min(0).optional(),
  }),
  /** An answer that no Graph server wrote: a proxy's HTML page, or nothing at all. */
  z.strictObject({
    kind: z.literal('http_error'),
    httpStatus: z.int().min(400).max(599).default(502),
    body: z.enum(['html', 'empty']).default('html'),
    delivered: z.boolean().default(false),
    retryAfter: z.union([z.int().min(0), headerValue.max(64)]).optional(),
  }),
  /** HTTP 200 that breaks off in the middle of the body. */
  z.strictObject({ kind: z.literal('truncate'), delivered: z.boolean().default(true) }),
  /** The connection ends without an answer. */
  z.strictObject({
    kind: z.literal('drop_connection'),
    delivered: z.boolean(),
    how: z.enum(['close', 'reset']).default('close'),
  }),
  /** No answer until the client gives up. */
  z.strictObject({ kind: z.literal('hang'), delivered: z.boolean() }),
  /** 190/463 for the access token of the first request that meets this rule, until the rule is removed or the caller has another token. */
  z.strictObject({ kind: z.literal('token_expired') }),
  z.strictObject({ kind: z.literal('delay'), ms: milliseconds }),
  z.strictObject({ kind: z.literal('headers'), headers: z.record(z.string().regex(/^[a-z0-9-]+$/), headerValue) }),
  /** `x-app-usage` and `x-business-use-case-usage` as a caller near its limit gets them. */
  z.strictObject({ kind: z.literal('usage'), callCount: z.int().min(0).max(1000), regainMinutes: z.int().min(0).default(0) }),
  /** Accepted, but held by pacing: released after the held delay, dropped by webhook (132015), or neither. */
  z.strictObject({
    kind: z.literal('hold'),
    messageStatus: z.string().min(1).max(64).default('held_for_quality_assessment'),
    then: z.enum(['release', 'drop', 'nothing']).default('release'),
    afterMs: milliseconds.optional(),
  }),
  /** Accepted, then exactly these statuses. An empty list is silence. */
  z.strictObject({
    kind: z.literal('journey'),
    steps: z.array(journeyStepSchema).max(20),
    copies: z.int().min(1).max(10).default(1),
  }),
  /** The first status is posted, and answered, before the send is. */
  z.strictObject({ kind: z.literal('webhook_first') }),
]);

export type Action = z.infer<typeof actionSchema>;
export type ActionInput = z.input<typeof actionSchema>;

export const ruleSchema = z.strictObject({
  id: z.string().min(1).max(64).optional(),
  match: z
    .strictObject({
      phoneNumberId: z.string().optional(),
      /** `+` and digits, or digits. */
      recipient: z.string().optional(),
      recipientPrefix: z.string().optional(),
      template: z.string().optional(),
      language: z.string().optional(),
      type: z.string().optional(),
      tokenPrefix: z.string().optional(),
      /** Only the nth request that matches all of the above, counted from 1. */
      nth: z.int().min(1).optional(),
      /** Every nth request that matches all of the above. */
      every: z.int().min(1).optional(),
      /** The share of the requests that are left. */
      probability: z.number().min(0).max(1).optional(),
    })
    .default({}),
  action: actionSchema,
  /** How often the rule acts; without it, always. */
  times: z.int().min(1).optional(),
});

export type Rule = z.infer<typeof ruleSchema>;
export type RuleInput = z.input<typeof ruleSchema>;
