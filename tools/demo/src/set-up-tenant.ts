import type { Everything } from './start-everything';
import { Api } from './call-api';

export const RATE = 80;

export interface DemoNumber {
  name: string;
  phoneNumberId: string;
}

export const MAIN: DemoNumber = { name: 'wa-main', phoneNumberId: '700600500400301' };
export const SECOND: DemoNumber = { name: 'wa-second', phoneNumberId: '700600500400302' };

const SECRETS = { accessToken: 'demo-access-token', appSecret: 'demo-app-secret', verifyToken: 'demo-verify-token' };

/** A tenant with a key and two WhatsApp numbers whose webhooks come to receipts, as the provider checks at once. */
export async function setUpTenant({ platform, simulator }: Everything): Promise<{ api: Api; key: string }> {
  const operator = new Api(platform.apiUrl, platform.operatorKey);
  const tenant = await operator.post<{ id: string }>('/v1/admin/tenants', { name: 'Sunny Shop', mode: 'test' });
  const scopes = ['schedules', 'audiences', 'numbers'].flatMap((what) => [`${what}:read`, `${what}:write`]);
  const { key } = await operator.post<{ key: string }>(`/v1/admin/tenants/${tenant.id}/api-keys`, {
    name: 'demo',
    scopes: [...scopes, 'messages:read', 'recipients:read'],
  });
  const api = new Api(platform.apiUrl, key);
  await simulator.control.registerTemplates({
    name: 'summer_sale',
    language: 'en_US',
    header: 1,
    body: 2,
    dynamicButtons: [0, 2],
  });
  const numbers = [];
  for (const { name, phoneNumberId } of [MAIN, SECOND]) {
    const { webhook } = await api.put<{ webhook: { path: string } }>(`/v1/numbers/${name}`, {
      kind: 'whatsapp',
      provider: { name: 'whatsapp_cloud', numberId: phoneNumberId, wabaId: '900100200300400' },
      ratePerSecond: RATE,
      credentials: { accessToken: SECRETS.accessToken },
      webhook: { appSecret: SECRETS.appSecret, verifyToken: SECRETS.verifyToken },
    });
    numbers.push({
      phoneNumberId,
      ratePerSecond: RATE,
      accessToken: SECRETS.accessToken,
      webhook: { url: platform.receiptsUrl + webhook.path, appSecret: SECRETS.appSecret, verifyToken: SECRETS.verifyToken },
    });
  }
  await simulator.control.configure({ numbers });
  return { api, key };
}
