import { createHmac } from 'node:crypto';
import { webhookError } from '../graph/graph-errors';
import type { StatusName } from './status-names';

export interface StatusFacts {
  messageId: string;
  status: StatusName;
  timestampSeconds: number;
  /** Digits, or a business-scoped user id. */
  recipient: string;
  isUserId: boolean;
  token: string;
  /** `marketing`, `utility`, `authentication`, or `service` for free-form messages. */
  category: string;
  failureCode?: number;
  legacyConversation: boolean;
}

/** One element of `statuses`, members in Meta's order, ready to be joined: rendered by hand, as this is the hottest JSON here. */
export function renderStatus(facts: StatusFacts): string {
  let json = `{"id":"${facts.messageId}","status":"${facts.status}","timestamp":"${facts.timestampSeconds}"`;
  json += facts.isUserId ? `,"recipient_user_id":"${facts.recipient}"` : `,"recipient_id":"${facts.recipient}"`;
  if (facts.token !== '') json += `,"biz_opaque_callback_data":${JSON.stringify(facts.token)}`;
  if (facts.status === 'failed') return `${json},"errors":[${JSON.stringify(webhookError(facts.failureCode ?? 131026))}]}`;
  // Real webhooks price a message on `sent` and once more on one of the two others.
  if (facts.status !== 'read') {
    const paid = facts.category !== 'service';
    json += `,"pricing":{"billable":${paid},"pricing_model":"PMP","type":"${paid ? 'regular' : 'free_customer_service'}","category":"${facts.category}"}`;
  }
  if (facts.legacyConversation) {
    json += `,"conversation":{"id":"${conversationId(facts.recipient)}","expiration_timestamp":"${facts.timestampSeconds + 86_400}","origin":{"type":"${facts.category}"}}`;
  }
  return `${json}}`;
}

/** The same for every message to one person, so that it looks like a conversation. */
function conversationId(recipient: string): string {
  return Buffer.from(recipient.padStart(16, '0').slice(-16), 'latin1').toString('hex');
}

export interface NumberIdentity {
  wabaId: string;
  phoneNumberId: string;
  displayPhoneNumber: string;
}

export interface RenderedStatus {
  number: NumberIdentity;
  json: string;
  contact?: string;
}

/** A webhook body for any mix of numbers: an entry for each account, in it a change for each number or for each status. */
export function renderWebhook(statuses: readonly RenderedStatus[], shape: 'statuses' | 'changes'): string {
  const accounts = new Map<string, Map<string, RenderedStatus[]>>();
  statuses.forEach((status, index) => {
    const { wabaId, phoneNumberId } = status.number;
    const changes = accounts.get(wabaId) ?? new Map<string, RenderedStatus[]>();
    accounts.set(wabaId, changes);
    const key = shape === 'statuses' ? phoneNumberId : `${phoneNumberId}/${index}`;
    const change = changes.get(key);
    if (change) change.push(status);
    else changes.set(key, [status]);
  });
  const entries = [...accounts].map(
    ([wabaId, changes]) => `{"id":"${wabaId}","changes":[${[...changes.values()].map(renderChange).join(',')}]}`,
  );
  return escapeNonAscii(`{"object":"whatsapp_business_account","entry":[${entries.join(',')}]}`);
}

function renderChange(statuses: readonly RenderedStatus[]): string {
  const { displayPhoneNumber, phoneNumberId } = statuses[0]!.number;
  const contacts = statuses.flatMap((status) => (status.contact === undefined ? [] : [status.contact]));
  return (
    `{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"${displayPhoneNumber}","phone_number_id":"${phoneNumberId}"},` +
    (contacts.length > 0 ? `"contacts":[${contacts.join(',')}],` : '') +
    `"statuses":[${statuses.map((status) => status.json).join(',')}]},"field":"messages"}`
  );
}

export function renderContact(recipient: string, isUserId: boolean, profileName: string): string {
  const profile = `"profile":{"name":${JSON.stringify(profileName)}}`;
  return isUserId ? `{${profile},"user_id":"${recipient}"}` : `{${profile},"wa_id":"${recipient}"}`;
}

/** Meta writes everything outside ASCII as \uXXXX before it signs. */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The value of `X-Hub-Signature-256` for exactly these bytes. */
export function signature256(appSecret: string, body: string | Uint8Array): string {
  return `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`;
}

/** Well-formed and wrong. */
export function wrongSignature256(appSecret: string, body: string | Uint8Array): string {
  return signature256(`not ${appSecret}`, body);
}
