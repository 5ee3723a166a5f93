import { request, type Dispatcher } from 'undici';
import { ordinaryRecipient } from '../src/ordinary-recipients';

export interface SentMessage {
  httpStatus: number;
  headers: Dispatcher.ResponseData['headers'];
  text: string;
  json: {
    messages?: { id: string; message_status?: string }[];
    contacts?: { input: string; wa_id?: string; user_id?: string }[];
    error?: { code: number; error_subcode?: number; message: string; error_data?: { details: string } };
  };
}

export const TEMPLATE = { name: 'autumn_offer', language: { code: 'en_US' } };

/** A template send with a token, changed by `change`. */
export function templateSend(to: string, change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to,
    type: 'template',
    template: TEMPLATE,
    biz_opaque_callback_data: `token-${to}`,
    ...change,
  };
}

export async function send(
  url: string,
  body: unknown,
  {
    phoneNumberId = '700600500400301',
    token = 'a-token',
    headersTimeout = 30_000,
  }: { phoneNumberId?: string; token?: string | null; headersTimeout?: number } = {},
): Promise<SentMessage> {
  const answer = await request(`${url}/v25.0/${phoneNumberId}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headersTimeout,
  });
  const text = await answer.body.text();
  const isJson = String(answer.headers['content-type'] ?? '').startsWith('application/json');
  return {
    httpStatus: answer.statusCode,
    headers: answer.headers,
    text,
    json: (isJson ? JSON.parse(text) : {}) as SentMessage['json'],
  };
}

/** The error of a request that got no whole answer. */
export async function failureOf(sending: Promise<unknown>): Promise<string> {
  try {
    await sending;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return 'answered';
}

/** `count` template sends to different recipients, a few at a time: hundreds of new connections at once only test the machine. */
export async function sendMany(url: string, count: number): Promise<void> {
  let next = 0;
  const sendNext = async (): Promise<void> => {
    while (next < count) await send(url, templateSend(ordinaryRecipient(next++)));
  };
  await Promise.all(Array.from({ length: 16 }, sendNext));
}
