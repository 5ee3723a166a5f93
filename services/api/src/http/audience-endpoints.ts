import { z } from 'zod';
import { endpoint } from './endpoint';
import { page } from './query-schemas';

const tag = 'Audiences';
const instant = z.string().meta({ format: 'date-time' });
const audienceParams = z.object({ id: z.string().min(1).max(64) });

const rejectedRow = z.object({
  row: z.number().int().describe('Counted from 1, the header included'),
  value: z.string().describe('What stood there; numbers are shortened'),
  code: z.string().meta({ 'x-extensible-enum': true }),
  reason: z.string(),
});

const audienceAnswer = z.object({
  id: z.string(),
  name: z.string().nullable(),
  status: z.enum(['ready']).meta({ 'x-extensible-enum': true }),
  accepted: z.number().int().describe('Recipients: each gets a message of a schedule with this audience'),
  rejected: z.number().int(),
  duplicates: z.number().int().describe('Rows whose recipient came before; the first row counts'),
  parameters: z.array(
    z.object({
      name: z.string(),
      missing: z.number().int().describe('Recipients without it'),
      firstMissingRow: z.number().int().nullable(),
    }),
  ),
  rejectedSample: z.array(rejectedRow).describe('The first ones'),
  warnings: z.array(z.object({ code: z.string(), count: z.number().int(), rows: z.array(z.number().int()), detail: z.string() })),
  createdAt: instant,
});

export const uploadAudienceEndpoint = endpoint({
  method: 'POST',
  path: '/v1/audiences',
  operationId: 'uploadAudience',
  tag,
  summary:
    'Uploads a CSV file of recipients: a header row with `to` or `phone`, optionally `ref` and `timeZone`; every other column is a ' +
    'parameter. `Content-Encoding: gzip` is understood. Blank rows are skipped, but a file has at most twice as many rows of ' +
    'whatever kind as an audience may have recipients. The audience appears when the whole file is stored. With an ' +
    'Idempotency-Key a repeat must send the same file and parameters again: it is compared by its content, and not read anew',
  access: { scope: 'audiences:write' },
  query: z.strictObject({
    name: z.string().min(1).max(200).optional(),
    defaultCountry: z
      .string()
      .regex(/^[A-Z]{2}$/, 'two capital letters')
      .optional()
      .describe('Numbers without plus are national ones of this country'),
    digits: z.literal('international').optional().describe('Numbers without plus start with their country code'),
    distinctBy: z.enum(['number', 'ref']).optional().describe('What makes two rows the same recipient; default number'),
  }),
  streamed: ['text/csv'],
  success: [{ status: 201, description: 'Stored, and ready for schedules', schema: audienceAnswer }],
  refusals: [
    'media_type_unsupported',
    'upload_invalid',
    'upload_too_large',
    'upload_interrupted',
    'upload_stalled',
    'too_many_uploads',
  ],
});

export const readAudienceEndpoint = endpoint({
  method: 'GET',
  path: '/v1/audiences/:id',
  operationId: 'readAudience',
  tag,
  summary: 'An audience',
  access: { scope: 'audiences:read' },
  params: audienceParams,
  success: [{ status: 200, description: 'The audience', schema: audienceAnswer }],
  refusals: ['audience_not_found'],
});

export const listRejectedEndpoint = endpoint({
  method: 'GET',
  path: '/v1/audiences/:id/rejected',
  operationId: 'listRejected',
  tag,
  summary: 'Rows of an upload that were rejected, in the order of the file; with `Accept: text/csv` all of them as a file',
  access: { scope: 'audiences:read' },
  params: audienceParams,
  query: z.strictObject({ ...page }),
  success: [
    {
      status: 200,
      description: 'One page',
      schema: z.object({ data: z.array(rejectedRow), nextCursor: z.string().nullable() }),
    },
  ],
  refusals: ['audience_not_found', 'cursor_mismatch'],
});
