import { request } from 'undici';

export type EndpointVerification = { ok: true } | { ok: false; reason: string };

/** Asks a webhook endpoint for its challenge, as Meta does whenever a subscription is saved. */
export async function verifyEndpoint(url: string, verifyToken: string, challenge: string): Promise<EndpointVerification> {
  const target = new URL(url);
  target.searchParams.set('hub.mode', 'subscribe');
  target.searchParams.set('hub.challenge', challenge);
  target.searchParams.set('hub.verify_token', verifyToken);
  try {
    const answer = await request(target, { method: 'GET', headersTimeout: 5000, bodyTimeout: 5000 });
    const body = await answer.body.text();
    if (answer.statusCode !== 200) return { ok: false, reason: `the endpoint answered HTTP ${answer.statusCode}, not 200` };
    if (body !== challenge)
      return { ok: false, reason: `the endpoint answered ${JSON.stringify(body.slice(0, 80))}, not the challenge ${challenge}` };
    return { ok: true };
  } catch (error) {
    return { ok: false, reason: `the endpoint could not be asked: ${error instanceof Error ? error.message : String(error)}` };
  }
}
