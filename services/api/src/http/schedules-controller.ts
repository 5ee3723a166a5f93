import { Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiParts } from '../api-parts';
import { changeSchedule } from '../change-schedule';
import { createSchedule } from '../create-schedule';
import { readSchedule, scheduleByName } from '../find-schedule';
import { listSchedules } from '../list-schedules';
import { reviseSchedule } from '../revise-schedule';
import { Door, type CallOf } from './door';
import { Endpoint } from './endpoint';
import {
  cancelScheduleEndpoint,
  createScheduleEndpoint,
  listSchedulesEndpoint,
  pauseScheduleEndpoint,
  readScheduleEndpoint,
  resumeScheduleEndpoint,
  reviseScheduleEndpoint,
} from './schedule-endpoints';

@Controller()
export class SchedulesController {
  constructor(
    private readonly door: Door,
    private readonly parts: ApiParts,
  ) {}

  @Endpoint(createScheduleEndpoint)
  create(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(createScheduleEndpoint, request, reply, (call) => createSchedule(this.parts, call));
  }

  @Endpoint(listSchedulesEndpoint)
  list(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(listSchedulesEndpoint, request, reply, (call) => listSchedules(this.parts, call));
  }

  @Endpoint(readScheduleEndpoint)
  read(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readScheduleEndpoint, request, reply, (call) => readSchedule(this.parts, call));
  }

  @Endpoint(reviseScheduleEndpoint)
  revise(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(reviseScheduleEndpoint, request, reply, (call) => reviseSchedule(this.parts, call));
  }

  @Endpoint(pauseScheduleEndpoint)
  pause(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(pauseScheduleEndpoint, request, reply, (call) => this.change('pause', call));
  }

  @Endpoint(resumeScheduleEndpoint)
  resume(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(resumeScheduleEndpoint, request, reply, (call) => this.change('resume', call));
  }

  @Endpoint(cancelScheduleEndpoint)
  cancel(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(cancelScheduleEndpoint, request, reply, (call) => this.change('cancel', call));
  }

  private change(name: 'pause' | 'resume' | 'cancel', call: CallOf<typeof cancelScheduleEndpoint>) {
    const find = () => scheduleByName(this.parts, call.caller.tenantId, call.params.id);
    return changeSchedule(this.parts, call, name, find, 'schedule_not_found');
  }
}
