import { z } from 'zod';
import { MESSAGE_STATUSES } from '#contracts/words';
import { reasonBody } from '../request/schedule-request';
import {
  cancelReceipt,
  messageAnswer,
  messageListAnswer,
  pauseReceipt,
  runAnswer,
  runListAnswer,
  scheduleAnswer,
  timelineAnswer,
} from './answer-schemas';
import { endpoint } from './endpoint';
import { page, repeated } from './query-schemas';
import { scheduleName } from './schedule-endpoints';

const runParams = z.object({ id: z.string().min(1).max(64) });
const messageParams = z.object({ id: z.string().min(1).max(64) });

export const listRunsEndpoint = endpoint({
  method: 'GET',
  path: '/v1/schedules/:id/runs',
  operationId: 'listRuns',
  tag: 'Runs',
  summary: 'The runs of a schedule; a one-off has one',
  access: { scope: 'schedules:read' },
  params: scheduleName,
  success: [{ status: 200, description: 'The runs', schema: runListAnswer }],
  refusals: ['schedule_not_found'],
});

export const readRunEndpoint = endpoint({
  method: 'GET',
  path: '/v1/runs/:id',
  operationId: 'readRun',
  tag: 'Runs',
  summary: 'How far a run is; the counts add up to the total',
  access: { scope: 'schedules:read' },
  params: runParams,
  success: [{ status: 200, description: 'The run', schema: runAnswer }],
  refusals: ['run_not_found'],
});

export const listRunMessagesEndpoint = endpoint({
  method: 'GET',
  path: '/v1/runs/:id/messages',
  operationId: 'listRunMessages',
  tag: 'Runs',
  summary: 'The messages of a run, also those that were not released yet',
  access: { scope: 'messages:read' },
  params: runParams,
  query: z.strictObject({ ...page, status: repeated(z.enum(MESSAGE_STATUSES)).optional() }),
  success: [
    { status: 200, description: 'One page; a filtered one can be short and still have a next', schema: messageListAnswer },
  ],
  refusals: ['run_not_found', 'cursor_mismatch'],
});

const changeRun = {
  method: 'POST',
  tag: 'Runs',
  access: { scope: 'schedules:write' },
  params: runParams,
  body: reasonBody,
  bodyOptional: true,
} as const;

export const pauseRunEndpoint = endpoint({
  ...changeRun,
  path: '/v1/runs/:id/pause',
  operationId: 'pauseRun',
  summary: 'Pauses the run; of a one-off, its schedule',
  success: [{ status: 200, description: 'What is held', schema: pauseReceipt }],
  refusals: ['run_not_found', 'schedule_ended'],
});

export const resumeRunEndpoint = endpoint({
  ...changeRun,
  path: '/v1/runs/:id/resume',
  operationId: 'resumeRun',
  summary: 'Resumes the run; of a one-off, its schedule',
  success: [{ status: 200, description: 'The schedule', schema: scheduleAnswer }],
  refusals: ['run_not_found', 'schedule_ended'],
});

export const cancelRunEndpoint = endpoint({
  ...changeRun,
  path: '/v1/runs/:id/cancel',
  operationId: 'cancelRun',
  summary: 'Cancels the run; of a one-off, its schedule',
  success: [{ status: 200, description: 'What was prevented', schema: cancelReceipt }],
  refusals: ['run_not_found'],
});

export const readMessageEndpoint = endpoint({
  method: 'GET',
  path: '/v1/messages/:id',
  operationId: 'readMessage',
  tag: 'Messages',
  summary: 'A message as it is now, from the moment that its schedule was accepted',
  access: { scope: 'messages:read' },
  params: messageParams,
  success: [{ status: 200, description: 'The message', schema: messageAnswer }],
  refusals: ['message_not_found'],
});

export const readTimelineEndpoint = endpoint({
  method: 'GET',
  path: '/v1/messages/:id/timeline',
  operationId: 'readTimeline',
  tag: 'Messages',
  summary: 'What happened to a message, in order',
  access: { scope: 'messages:read' },
  params: messageParams,
  success: [{ status: 200, description: 'The timeline', schema: timelineAnswer }],
  refusals: ['message_not_found'],
});

export const cancelMessageEndpoint = endpoint({
  method: 'POST',
  path: '/v1/messages/:id/cancel',
  operationId: 'cancelMessage',
  tag: 'Messages',
  summary: 'Cancels one message if no attempt has begun, or one is known as not sent',
  access: { scope: 'schedules:write' },
  params: messageParams,
  body: reasonBody,
  bodyOptional: true,
  success: [{ status: 200, description: 'The message, cancelled', schema: messageAnswer }],
  refusals: ['message_not_found', 'too_late'],
});
