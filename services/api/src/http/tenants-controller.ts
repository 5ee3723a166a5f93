import { Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiParts } from '../api-parts';
import { createKeyForTenant, createOwnKey, createTenant, readTenant } from '../create-tenant';
import { readNumber, registerNumber } from '../put-number';
import { Door } from './door';
import { Endpoint } from './endpoint';
import {
  createApiKeyEndpoint,
  createTenantEndpoint,
  createTenantKeyEndpoint,
  putNumberEndpoint,
  readNumberEndpoint,
  readTenantEndpoint,
} from './tenant-endpoints';

@Controller()
export class TenantsController {
  constructor(
    private readonly door: Door,
    private readonly parts: ApiParts,
  ) {}

  @Endpoint(createTenantEndpoint)
  createTenant(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(createTenantEndpoint, request, reply, (call) => createTenant(this.parts, call));
  }

  @Endpoint(readTenantEndpoint)
  readTenant(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readTenantEndpoint, request, reply, (call) => readTenant(this.parts, call));
  }

  @Endpoint(createTenantKeyEndpoint)
  createTenantKey(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(createTenantKeyEndpoint, request, reply, (call) => createKeyForTenant(this.parts, call));
  }

  @Endpoint(createApiKeyEndpoint)
  createKey(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(createApiKeyEndpoint, request, reply, (call) => createOwnKey(this.parts, call));
  }

  @Endpoint(putNumberEndpoint)
  putNumber(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(putNumberEndpoint, request, reply, (call) => registerNumber(this.parts, call));
  }

  @Endpoint(readNumberEndpoint)
  readNumber(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readNumberEndpoint, request, reply, (call) => readNumber(this.parts, call));
  }
}
