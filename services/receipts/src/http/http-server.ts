import 'reflect-metadata';
import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { addHealthRoutes, type Condition } from '#runtime/http/health';
import { lingerAfterAnswers } from '#runtime/http/linger-after-answers';
import { addWebhookRoutes, type WebhookParts } from './webhook-routes';

/** Nest on Fastify, with the webhook routes and health. Not listening yet. */
export async function createHttpServer(
  module: DynamicModule,
  condition: Condition,
  parts: () => WebhookParts | null,
): Promise<NestFastifyApplication> {
  // Fastify's own log would print URLs and headers; ours is the one log.
  const adapter = new FastifyAdapter({
    logger: false,
    routerOptions: { maxParamLength: 100 },
    // A webhook that never ends must not keep its connection.
    requestTimeout: 30_000,
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  const server = adapter.getInstance() as unknown as FastifyInstance;
  const lingering = lingerAfterAnswers(server.server);
  server.addHook('preClose', (done) => {
    lingering.close();
    done();
  });
  addHealthRoutes(server, condition);
  addWebhookRoutes(server, parts);
  return app;
}
