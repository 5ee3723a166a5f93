import { Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiParts } from '../api-parts';
import { changeSchedule } from '../change-schedule';
import { scheduleOfRun } from '../find-schedule';
import { cancelMessage, readMessage, readTimeline } from '../read-message';
import { listRunMessages, listRuns, readRun } from '../read-run';
import { Door, type CallOf } from './door';
import { Endpoint } from './endpoint';
import {
  cancelMessageEndpoint,
  cancelRunEndpoint,
  listRunMessagesEndpoint,
  listRunsEndpoint,
  pauseRunEndpoint,
  readMessageEndpoint,
  readRunEndpoint,
  readTimelineEndpoint,
  resumeRunEndpoint,
} from './run-endpoints';

@Controller()
export class RunsController {
  constructor(
    private readonly door: Door,
    private readonly parts: ApiParts,
  ) {}

  @Endpoint(listRunsEndpoint)
  listRuns(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(listRunsEndpoint, request, reply, (call) => listRuns(this.parts, call));
  }

  @Endpoint(readRunEndpoint)
  readRun(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readRunEndpoint, request, reply, (call) => readRun(this.parts, call));
  }

  @Endpoint(listRunMessagesEndpoint)
  listMessages(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(listRunMessagesEndpoint, request, reply, (call) => listRunMessages(this.parts, call));
  }

  @Endpoint(pauseRunEndpoint)
  pauseRun(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(pauseRunEndpoint, request, reply, (call) => this.change('pause', call));
  }

  @Endpoint(resumeRunEndpoint)
  resumeRun(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(resumeRunEndpoint, request, reply, (call) => this.change('resume', call));
  }

  @Endpoint(cancelRunEndpoint)
  cancelRun(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(cancelRunEndpoint, request, reply, (call) => this.change('cancel', call));
  }

  @Endpoint(readMessageEndpoint)
  readMessage(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readMessageEndpoint, request, reply, (call) => readMessage(this.parts, call));
  }

  @Endpoint(readTimelineEndpoint)
  readTimeline(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readTimelineEndpoint, request, reply, (call) => readTimeline(this.parts, call));
  }

  @Endpoint(cancelMessageEndpoint)
  cancelMessage(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(cancelMessageEndpoint, request, reply, (call) => cancelMessage(this.parts, call));
  }

  private change(name: 'pause' | 'resume' | 'cancel', call: CallOf<typeof cancelRunEndpoint>) {
    const find = () => scheduleOfRun(this.parts, call.caller.tenantId, call.params.id);
    return changeSchedule(this.parts, call, name, find, 'run_not_found');
  }
}
