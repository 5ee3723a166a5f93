import { z } from 'zod';
import { MESSAGE_STATUSES, WAIT_REASONS } from '#contracts/words';
import { SCOPES } from '../keys/api-key';
import { createScheduleBody } from '../request/schedule-request';

/** What answers look like, for the documentation. Enumerated values can grow within /v1. */
const instant = z.string().meta({ format: 'date-time' });
const extensible = { 'x-extensible-enum': true };

export const tenantAnswer = z.object({ id: z.string(), name: z.string(), mode: z.enum(['test', 'live']), createdAt: instant });

export const apiKeyAnswer = z.object({
  id: z.string(),
  name: z.string(),
  mode: z.enum(['test', 'live']),
  scopes: z.array(z.enum(SCOPES)),
  hint: z.string(),
  createdAt: instant,
  key: z.string().optional().describe('Shown once; not in a replayed answer'),
});

export const numberAnswer = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  mode: z.enum(['test', 'live']),
  channel: z.string(),
  provider: z.object({ name: z.string(), numberId: z.string(), wabaId: z.string().nullable(), appId: z.string().nullable() }),
  ratePerSecond: z.number(),
  credentials: z.object({ fingerprint: z.string(), updatedAt: instant }),
  webhook: z.object({
    path: z.string().describe('Where the provider posts, below the address of receipts'),
    configured: z.boolean(),
  }),
  learnedRatePerSecond: z.number().nullable(),
  hold: z
    .object({ reason: z.string(), since: instant.nullable(), until: instant.nullable(), detail: z.string().nullable() })
    .nullable(),
  version: z.number().int(),
  createdAt: instant,
  updatedAt: instant,
});

const waitingFor = z
  .object({ reason: z.enum(WAIT_REASONS).meta(extensible), since: instant.nullable(), until: instant.nullable() })
  .nullable();
const mark = z.object({ at: instant, by: z.string(), reason: z.string().nullable() }).nullable();

export const scheduleAnswer = createScheduleBody.omit({ recipients: true }).extend({
  id: z.string(),
  status: z.enum(['active', 'completed', 'cancelled']).meta(extensible),
  paused: mark,
  cancelled: mark,
  waitingFor,
  version: z.number().int(),
  revision: z.number().int(),
  mode: z.enum(['test', 'live']),
  createdAt: instant,
  next: z.array(
    z.object({
      slot: z.string(),
      runId: z.string(),
      timeZone: z.string(),
      local: z.string(),
      at: instant,
      validUntil: instant.nullable(),
      rule: z.enum(['exact', 'gap_shift', 'fold_first', 'fold_second', 'offset', 'now']).meta(extensible),
      tzdb: z.string(),
      recipients: z.number().int(),
      note: z.string().nullable(),
    }),
  ),
  audience: z.object({ id: z.string(), accepted: z.number().int(), rejected: z.number().int(), duplicates: z.number().int() }),
  recipients: z
    .array(
      z.object({
        index: z.number().int(),
        ref: z.string().nullable(),
        result: z.enum(['accepted', 'rejected', 'duplicate']),
        messageId: z.string().optional(),
        duplicateOf: z.number().int().optional(),
        error: z.object({ code: z.string(), pointer: z.string(), detail: z.string() }).optional(),
      }),
    )
    .optional()
    .describe('Only where recipients were given in the request, in the order sent'),
  forecast: z.object({ firstSendAt: instant, lastSendAt: instant, ratePerSecond: z.number() }),
  warnings: z.array(z.object({ code: z.string(), pointer: z.string(), detail: z.string() })),
});

export const revisedScheduleAnswer = scheduleAnswer.extend({
  change: z.object({ alreadyAtGate: z.number().int(), willUseRevision: z.number().int() }),
});

export const scheduleListAnswer = z.object({ data: z.array(scheduleAnswer), nextCursor: z.string().nullable() });

const receiptMembers = {
  scheduleId: z.string(),
  scope: z.object({ slots: z.array(z.string()), future: z.boolean() }),
  outcome: z.enum(['all_prevented', 'partly_prevented', 'nothing_prevented']).meta(extensible),
  version: z.number().int(),
  at: instant,
  total: z.number().int(),
  inFlight: z.number().int(),
  submitted: z.number().int(),
  uncertain: z.number().int(),
  ended: z.number().int(),
};
export const cancelReceipt = z.object({ ...receiptMembers, prevented: z.number().int() });
export const pauseReceipt = z.object({ ...receiptMembers, held: z.number().int() });

export const runAnswer = z.object({
  id: z.string(),
  scheduleId: z.string(),
  slot: z.string(),
  status: z.enum(['scheduled', 'running', 'completed', 'cancelled']).meta(extensible),
  outcome: z.enum(['succeeded', 'partly_failed', 'failed']).meta(extensible).nullable(),
  total: z.number().int(),
  counts: z.record(z.string(), z.number().int()).describe('By message status; adds up to total'),
  byReason: z.record(z.string(), z.record(z.string(), z.number().int())),
  byZone: z.array(z.object({})),
  startedAt: instant.nullable(),
  completedAt: instant.nullable(),
  ratePerSecond: z.object({ allowed: z.number(), achieved: z.number().nullable() }),
  successRate: z.number().nullable(),
  deliveryRate: z.number().nullable(),
  waitingFor,
});
export const runListAnswer = z.object({ data: z.array(runAnswer), nextCursor: z.string().nullable() });

export const messageAnswer = z.object({
  id: z.string(),
  scheduleId: z.string(),
  runId: z.string(),
  slot: z.string(),
  revision: z.number().int(),
  channel: z.string(),
  mode: z.enum(['test', 'live']),
  ref: z.string().nullable(),
  to: z.string().nullable().describe('Shortened without the scope recipients:read'),
  status: z.enum(MESSAGE_STATUSES).meta(extensible),
  final: z.boolean(),
  reachedProvider: z.enum(['no', 'maybe', 'yes']),
  reason: z.string().nullable(),
  waitingFor: z
    .object({ reason: z.string(), since: instant.nullable(), until: instant.nullable(), givesUpAt: instant.nullable() })
    .nullable(),
  dueAt: instant,
  submittedAt: instant.nullable(),
  evidence: z
    .object({
      sentAt: instant.nullable(),
      deliveredAt: instant.nullable(),
      readAt: instant.nullable(),
      failedAt: instant.nullable(),
    })
    .describe('As the provider told, in whole seconds of its own clock; when we heard it where that can not be'),
  attempts: z.number().int(),
  nextAttemptAt: instant.nullable(),
  error: z
    .object({
      code: z.string(),
      retryable: z.boolean(),
      text: z.string(),
      action: z.string(),
      at: instant.nullable(),
      provider: z.object({ code: z.string().nullable(), text: z.string().nullable() }),
    })
    .nullable(),
  provider: z.object({ name: z.string(), messageId: z.string().nullable(), status: z.string().nullable() }),
  delay: z.object({ totalMs: z.number(), waits: z.array(z.object({ reason: z.string(), ms: z.number() })) }).nullable(),
});
export const messageListAnswer = z.object({ data: z.array(messageAnswer), nextCursor: z.string().nullable() });

export const timelineAnswer = z.object({
  data: z.array(
    z.object({
      at: instant.describe('By our clocks, and what the timeline is ordered by: of what a provider says, when we heard it'),
      providerAt: instant
        .nullable()
        .describe(
          'Of what a provider says, when it was by its own clock, as it told it: whole seconds, which can be before the call that ' +
            'they are about. Null for all else',
        ),
      what: z.string(),
      by: z.string(),
      detail: z.record(z.string(), z.unknown()),
      traceId: z.string().nullable(),
    }),
  ),
});
