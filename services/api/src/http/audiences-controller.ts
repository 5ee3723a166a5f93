import { Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiParts } from '../api-parts';
import { AudienceParts } from '../audience/audience-parts';
import { exportRejected, listRejected, readAudience } from '../audience/read-audience';
import { AudienceUpload } from '../audience/upload-audience';
import { listRejectedEndpoint, readAudienceEndpoint, uploadAudienceEndpoint } from './audience-endpoints';
import { Door } from './door';
import { Endpoint } from './endpoint';

@Controller()
export class AudiencesController {
  constructor(
    private readonly door: Door,
    private readonly parts: ApiParts,
    private readonly audiences: AudienceParts,
  ) {}

  @Endpoint(uploadAudienceEndpoint)
  async upload(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const upload = new AudienceUpload(this.parts, this.audiences, request.raw);
    try {
      await this.door.enter(uploadAudienceEndpoint, request, reply, (call) => upload.step(call));
    } finally {
      await upload.close();
    }
  }

  @Endpoint(readAudienceEndpoint)
  read(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.door.enter(readAudienceEndpoint, request, reply, (call) => readAudience(this.audiences, call));
  }

  @Endpoint(listRejectedEndpoint)
  rejected(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const asFile = /^\s*text\/csv\b/i.test(request.headers.accept ?? '');
    return this.door.enter(listRejectedEndpoint, request, reply, (call) =>
      asFile ? exportRejected(this.audiences, call) : listRejected(this.audiences, call),
    );
  }
}
