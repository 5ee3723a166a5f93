import { z } from 'zod';
import { createScheduleBody, reasonBody, reviseScheduleBody } from '../request/schedule-request';
import { cancelReceipt, pauseReceipt, revisedScheduleAnswer, scheduleAnswer, scheduleListAnswer } from './answer-schemas';
import { endpoint } from './endpoint';
import { repeated, page } from './query-schemas';

const tag = 'Schedules';
export const scheduleName = z.object({ id: z.string().min(1).max(140).describe('Id, or `ext:<externalId>`') });

export const createScheduleEndpoint = endpoint({
  method: 'POST',
  path: '/v1/schedules',
  operationId: 'createSchedule',
  tag,
  summary:
    'Schedules messages: audience, content, time and policies. An active schedule of two or more recipients that is the same in number, ' +
    'content, instant and recipients makes this one a duplicate, unless it says `allowDuplicate`; one recipient is never a duplicate',
  access: { scope: 'schedules:write' },
  body: createScheduleBody,
  success: [{ status: 201, description: 'Accepted and stored', schema: scheduleAnswer }],
  refusals: ['external_id_taken', 'duplicate_schedule'],
});

/** Years that every part of the platform can tell. */
const instant = z.iso
  .datetime({ offset: true })
  .refine((text) => /^(19[7-9]\d|[2-9]\d{3})-/.test(text), 'a year from 1970 to 9999');

export const listSchedulesEndpoint = endpoint({
  method: 'GET',
  path: '/v1/schedules',
  operationId: 'listSchedules',
  tag,
  summary: 'Schedules, newest first',
  access: { scope: 'schedules:read' },
  query: z.strictObject({
    ...page,
    status: repeated(z.enum(['active', 'completed', 'cancelled'])).optional(),
    label: repeated(z.string().regex(/^[A-Za-z0-9_.-]{1,64}:.{0,256}$/, 'name:value'))
      .optional()
      .describe('name:value; repeated: all of them'),
    dueFrom: instant.optional().describe('Inclusive'),
    dueUntil: instant.optional().describe('Exclusive'),
  }),
  success: [{ status: 200, description: 'One page', schema: scheduleListAnswer }],
  refusals: ['cursor_mismatch'],
});

export const readScheduleEndpoint = endpoint({
  method: 'GET',
  path: '/v1/schedules/:id',
  operationId: 'readSchedule',
  tag,
  summary: 'A schedule as it is now',
  access: { scope: 'schedules:read' },
  params: scheduleName,
  success: [{ status: 200, description: 'The schedule', schema: scheduleAnswer }],
  refusals: ['schedule_not_found'],
});

export const reviseScheduleEndpoint = endpoint({
  method: 'PATCH',
  path: '/v1/schedules/:id',
  operationId: 'reviseSchedule',
  tag,
  summary: 'Replaces the members given; messages that have not reached the gate follow the new revision',
  access: { scope: 'schedules:write' },
  params: scheduleName,
  body: reviseScheduleBody,
  ifMatch: 'required',
  success: [{ status: 200, description: 'The schedule, and how many messages follow the change', schema: revisedScheduleAnswer }],
  refusals: ['schedule_not_found', 'schedule_ended', 'audience_in_use', 'duplicate_schedule', 'version_mismatch'],
});

export const pauseScheduleEndpoint = endpoint({
  method: 'POST',
  path: '/v1/schedules/:id/pause',
  operationId: 'pauseSchedule',
  tag,
  summary: 'No further message starts until resumed',
  access: { scope: 'schedules:write' },
  params: scheduleName,
  body: reasonBody,
  bodyOptional: true,
  success: [{ status: 200, description: 'What is held; the same for a repeat', schema: pauseReceipt }],
  refusals: ['schedule_not_found', 'schedule_ended'],
});

export const resumeScheduleEndpoint = endpoint({
  method: 'POST',
  path: '/v1/schedules/:id/resume',
  operationId: 'resumeSchedule',
  tag,
  summary: 'Ends a pause, and the hold of a run whose messages only failed',
  access: { scope: 'schedules:write' },
  params: scheduleName,
  body: reasonBody,
  bodyOptional: true,
  success: [{ status: 200, description: 'The schedule', schema: scheduleAnswer }],
  refusals: ['schedule_not_found', 'schedule_ended'],
});

export const cancelScheduleEndpoint = endpoint({
  method: 'POST',
  path: '/v1/schedules/:id/cancel',
  operationId: 'cancelSchedule',
  tag,
  summary: 'No further message starts, for good',
  access: { scope: 'schedules:write' },
  params: scheduleName,
  body: reasonBody,
  bodyOptional: true,
  success: [{ status: 200, description: 'What was prevented; the same for a repeat', schema: cancelReceipt }],
  refusals: ['schedule_not_found'],
});
