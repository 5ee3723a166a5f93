import { z } from 'zod';
import { messageContent } from '#contracts/content';

export const MOST_INLINE_RECIPIENTS = 10_000;

const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const nameKey = z
  .string()
  .regex(NAME, '1 to 64 letters, digits, "_", "-" or "."')
  .refine((key) => key !== '__proto__', 'not allowed as a name');

export const labels = z
  .record(nameKey, z.string().max(256))
  .refine((given) => Object.keys(given).length <= 20, 'at most 20 labels')
  .describe('For filters and events');

export const externalId = z
  .string()
  .regex(/^[A-Za-z0-9._~:@-]{1,128}$/, '1 to 128 letters, digits or . _ ~ : @ -')
  .describe('Yours; unique per tenant for good, and usable as `ext:<externalId>` wherever a schedule id is');

export const recipient = z.strictObject({
  to: z.string().min(1).max(64).describe('E.164 with plus, unless `digits` or `defaultCountry` says how to read it'),
  ref: z.string().min(1).max(128).optional().describe('Your own reference; comes back with every status'),
  timeZone: z.string().min(1).max(64).optional(),
  parameters: z
    .record(nameKey, z.string().max(1024))
    .refine((given) => Object.keys(given).length <= 50, 'at most 50 parameters')
    .optional()
    .describe('Values for the placeholders of the content'),
});
export type RecipientRequest = z.infer<typeof recipient>;

export const when = z
  .strictObject({
    at: z.string().max(40).optional().describe('Local time with `timeZone`, or a time with an offset'),
    timeZone: z.string().min(1).max(64).optional().describe('IANA name'),
    now: z.literal(true).optional(),
    gap: z
      .enum(['shift', 'skip'])
      .optional()
      .describe('For a local time that the clock skips; default shift: 02:30 becomes 03:30. Refused beside `now` or an offset'),
    fold: z
      .enum(['first', 'second', 'both'])
      .optional()
      .describe('For a local time that happens twice; default first. Refused beside `now` or an offset'),
  })
  .superRefine((given, context) => {
    if (given.at === undefined && given.now === undefined) {
      context.addIssue({ code: 'custom', path: ['at'], message: 'give at, or now', params: { code: 'required' } });
    }
    if (given.at !== undefined && given.now !== undefined) {
      context.addIssue({ code: 'custom', path: ['now'], message: 'give at or now, not both', params: { code: 'ambiguous' } });
    }
  });

export const validity = z
  .strictObject({
    for: z.string().max(40).optional().describe('ISO 8601 duration, from the due time'),
    untilLocal: z.string().max(8).optional().describe('HH:MM on the wall clock of when.timeZone'),
  })
  .superRefine((given, context) => {
    if ((given.for === undefined) === (given.untilLocal === undefined)) {
      context.addIssue({
        code: 'custom',
        path: [],
        message: 'give exactly one of for and untilLocal',
        params: { code: 'ambiguous' },
      });
    }
  })
  .describe('How late a message may be; later it expires');

export const retry = z.strictObject({
  delays: z
    .array(z.string().max(40))
    .max(10)
    .describe('ISO 8601 durations: one more attempt after each, for failures known as not sent'),
});

const members = {
  name: z.string().min(1).max(200),
  category: z.enum(['marketing', 'utility', 'authentication']),
  content: messageContent,
  audienceId: z.string().max(64),
  recipients: z.array(recipient).min(1).max(MOST_INLINE_RECIPIENTS),
  distinctBy: z.enum(['number', 'ref']).describe('What makes two recipients the same one; default number'),
  digits: z.literal('international').describe('Numbers without plus start with their country code'),
  defaultCountry: z
    .string()
    .regex(/^[A-Z]{2}$/, 'two capital letters')
    .describe('Numbers without plus are national ones of this country'),
  onInvalidRecipient: z.enum(['reject_all', 'skip']).describe('Default reject_all'),
  when,
  priority: z.number().int().min(1).max(9).describe('1 most urgent, 9 least; default 5'),
  validity,
  onUncertain: z
    .enum(['leave', 'resend'])
    .describe('Whether an attempt that may have been sent is repeated when no evidence comes; default leave'),
  retry,
  labels,
};

const allowDuplicate = z
  .boolean()
  .describe(
    'Whether the same campaign may be scheduled twice; default false: number, content, instant and recipients of an active one are ' +
      '409 `duplicate_schedule`. A schedule of one recipient is never refused as a duplicate: equal messages to one person may be ' +
      'meant, and an Idempotency-Key or `externalId` makes a repeat safe',
  );

export const createScheduleBody = z.strictObject({
  name: members.name.optional(),
  externalId: externalId.optional(),
  from: z.strictObject({ number: z.string().min(1).max(64).describe('Name of one of your numbers') }),
  category: members.category.optional(),
  content: members.content,
  audienceId: members.audienceId.optional(),
  recipients: members.recipients.optional(),
  distinctBy: members.distinctBy.optional(),
  digits: members.digits.optional(),
  defaultCountry: members.defaultCountry.optional(),
  onInvalidRecipient: members.onInvalidRecipient.optional(),
  when: members.when,
  priority: members.priority.optional(),
  validity: members.validity.optional(),
  onUncertain: members.onUncertain.optional(),
  retry: members.retry.optional(),
  labels: members.labels.optional(),
  allowDuplicate: allowDuplicate.optional(),
});
export type CreateScheduleBody = z.infer<typeof createScheduleBody>;

/** Each member given replaces the whole member; null takes an optional one away. */
export const reviseScheduleBody = z.strictObject({
  name: members.name.nullable().optional(),
  category: members.category.optional(),
  content: members.content.optional(),
  audienceId: members.audienceId.optional(),
  recipients: members.recipients.optional(),
  distinctBy: members.distinctBy.optional(),
  digits: members.digits.optional(),
  defaultCountry: members.defaultCountry.optional(),
  onInvalidRecipient: members.onInvalidRecipient.optional(),
  when: members.when.optional(),
  priority: members.priority.optional(),
  validity: members.validity.nullable().optional(),
  onUncertain: members.onUncertain.optional(),
  retry: members.retry.nullable().optional(),
  labels: members.labels.optional(),
  allowDuplicate: allowDuplicate.optional(),
});
export type ReviseScheduleBody = z.infer<typeof reviseScheduleBody>;

export const reasonBody = z.strictObject({ reason: z.string().min(1).max(500).optional().describe('Kept in the record') });
