import { request } from 'undici';
import type { z } from 'zod';
import type { Simulator } from '../simulator';
import { escapeNonAscii, signature256, wrongSignature256 } from '../webhooks/render-webhook';
import type { rawWebhookSchema, statusOrderSchema } from './control-schemas';
import type { RawWebhookAnswer } from './control-types';

type RawOrder = z.infer<typeof rawWebhookSchema> & { url: string; appSecret: string };

/** Posts any body as a webhook and tells what the receiver said. */
export async function sendRawWebhook({ url, appSecret, body, signature, headers }: RawOrder): Promise<RawWebhookAnswer> {
  const text = typeof body === 'string' ? body : escapeNonAscii(JSON.stringify(body));
  const signed: Record<string, string> = { 'content-type': 'application/json' };
  switch (signature) {
    case 'valid':
      signed['x-hub-signature-256'] = signature256(appSecret, text);
      break;
    case 'wrong':
      signed['x-hub-signature-256'] = wrongSignature256(appSecret, text);
      break;
    case 'none':
      break;
    default:
      signature satisfies never;
  }
  const answer = await request(url, { method: 'POST', headers: { ...signed, ...headers }, body: text, headersTimeout: 10_000 });
  return { httpStatus: answer.statusCode, body: await answer.body.text() };
}

type Emitted = { ok: true; messageId: string } | { ok: false; httpStatus: number; error: string; detail: string };

/** One more status for a message that was delivered before, as late or as contradictory as the order says. */
export function emitStatus(simulator: Simulator, order: z.infer<typeof statusOrderSchema>): Emitted {
  const recipient = order.recipient?.replace(/^\+/, '');
  const record = simulator.oracle.log.findLast(
    (candidate) =>
      (order.token === undefined || candidate.token === order.token) &&
      (recipient === undefined || candidate.recipient === recipient) &&
      (order.messageId === undefined || simulator.messageIdOf(candidate.recipient, candidate.sequence) === order.messageId),
  );
  if (!record)
    return {
      ok: false,
      httpStatus: 404,
      error: 'unknown_delivery',
      detail: 'No kept delivery matches; GET /control/deliveries lists them.',
    };
  const number = simulator.numberFor(record.phoneNumberId);
  if (!number?.subscription) {
    return { ok: false, httpStatus: 409, error: 'no_subscription', detail: 'Configure a webhook for the number first.' };
  }
  const messageId = simulator.messageIdOf(record.recipient, record.sequence);
  const [name = '', language = ''] = record.content.split('/');
  const template = simulator.templates.get(`${name}/${language}`);
  simulator.webhooks.emit(
    {
      sequence: record.sequence,
      messageId,
      recipient: record.recipient,
      isUserId: !/^[0-9]+$/.test(record.recipient),
      token: record.token,
      category: language === '' ? 'service' : (template?.category.toLowerCase() ?? 'marketing'),
      number: number.identity,
      subscription: number.subscription,
      journey: [],
      copies: 1,
    },
    { status: order.status, after: 0, code: order.code, timestampShiftSeconds: order.timestampShiftSeconds },
  );
  return { ok: true, messageId };
}
