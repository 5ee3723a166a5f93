import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseId, uuidText } from '#contracts/ids';
import { counter } from '#runtime/metrics';
import type { WebhookIntake } from '../intake/keep-webhook';
import type { WebhookNumber, WebhookSecrets } from '../intake/webhook-secrets';
import { METRICS } from '../metric-names';
import { answerVerification, hasValidSignature } from '../webhooks/whatsapp/verify-signature';

/** Meta posts up to 3 MB; ours is a little more. */
const LARGEST_BODY = 4 * 1024 * 1024;
const PATH = '/webhooks/whatsapp/:number';

interface NumberParams {
  number: string;
}

/** What the routes need, once the service has it: they answer 503 before. */
export interface WebhookParts {
  secrets: WebhookSecrets;
  intake: WebhookIntake;
}

const refused = counter(METRICS.webhooksRefused, 'Webhooks that were not taken, by reason');

/**
 * Meta's webhook endpoint, one path a number. Plain Fastify beside Nest's controllers, with a body parser of its own: the
 * signature covers the bytes as they came, and at 3,000 posts a second each layer that a request passes counts.
 */
export function addWebhookRoutes(fastify: FastifyInstance, parts: () => WebhookParts | null): void {
  void fastify.register(async (routes: FastifyInstance) => {
    routes.removeAllContentTypeParsers();
    routes.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LARGEST_BODY }, (_request, body, done) => done(null, body));
    routes.get<{ Params: NumberParams; Querystring: Record<string, unknown> }>(PATH, async (request, reply) => {
      const found = await find(parts(), request, reply);
      if (!found) return reply;
      let challenge = found.number.verifyToken && answerVerification(found.number.verifyToken, request.query);
      if (!challenge) {
        const changed = await found.secrets.findChanged(found.number.numberId).catch(() => null);
        challenge = changed?.verifyToken ? answerVerification(changed.verifyToken, request.query) : null;
      }
      if (challenge) return reply.code(200).header('x-content-type-options', 'nosniff').type('text/plain').send(challenge);
      return refuse(reply, 403, 'verification', 'The verify token is not the one of this number.');
    });
    routes.post<{ Params: NumberParams; Body: Buffer }>(PATH, { bodyLimit: LARGEST_BODY }, async (request, reply) => {
      const found = await find(parts(), request, reply);
      if (!found) return reply;
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const signature = request.headers['x-hub-signature-256'];
      if (signature === undefined) return refuse(reply, 401, 'unsigned', 'The signature header is missing.');
      if (!isSigned(found.number, body, signature)) {
        const changed = await found.secrets.findChanged(found.number.numberId);
        if (!changed || !isSigned(changed, body, signature)) {
          return refuse(reply, 403, 'signature', 'The signature does not fit the body and the app secret of this number.');
        }
      }
      const kept = await found.intake.keep(found.number, body);
      if (kept !== 'nowhere') return reply.code(200).send();
      return refuse(reply.header('retry-after', '5'), 503, 'nowhere', 'The webhook could not be stored; send it again.');
    });
  });
}

function isSigned({ appSecret }: WebhookNumber, body: Buffer, signature: unknown): boolean {
  return appSecret !== null && hasValidSignature(appSecret, body, signature);
}

async function find(
  parts: WebhookParts | null,
  request: FastifyRequest<{ Params: NumberParams }>,
  reply: FastifyReply,
): Promise<(WebhookParts & { number: WebhookNumber }) | null> {
  const id = parseId('num', request.params.number);
  try {
    const number = id && parts && (await parts.secrets.find(uuidText(id)));
    if (parts && number) return { ...parts, number };
  } catch {
    refuse(reply.header('retry-after', '5'), 503, 'unavailable', 'The number could not be looked up; send the webhook again.');
    return null;
  }
  if (parts) refuse(reply, 404, 'number', 'There is no such number.');
  else refuse(reply.header('retry-after', '5'), 503, 'starting', 'The service is starting; send the webhook again.');
  return null;
}

function refuse(reply: FastifyReply, status: number, reason: string, detail: string): FastifyReply {
  refused.add(1, { reason });
  return reply.code(status).type('text/plain').send(detail);
}
