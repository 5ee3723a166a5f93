import { sample } from '../../test-support/samples';
import {
  escapeNonAscii,
  renderContact,
  renderStatus,
  renderWebhook,
  signature256,
  wrongSignature256,
  type StatusFacts,
} from './render-webhook';

const NUMBER = { wabaId: '900100200300401', phoneNumberId: '700600500400301', displayPhoneNumber: '15005550199' };
const FACTS: StatusFacts = {
  messageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QTFGMDlDMjdERTgzQjU1MDEA',
  status: 'sent',
  timestampSeconds: 1782900000,
  recipient: '12025550143',
  isUserId: false,
  token: 'p1.att.01JZ8Q2K7M4T9X3V6B0N5R1HDA',
  category: 'marketing',
  legacyConversation: false,
};
const webhook = (facts: Partial<StatusFacts>): unknown =>
  JSON.parse(renderWebhook([{ number: NUMBER, json: renderStatus({ ...FACTS, ...facts }) }], 'statuses'));
const recorded = (name: string): { entry: { changes: { value: { statuses: Record<string, string>[] } }[] }[] } => sample(name);

describe('renderWebhook', () => {
  it('is the recorded sent and delivered webhook to the last value', () => {
    expect(webhook({})).toEqual(recorded('wa-webhook-status-sent'));
    expect(webhook({ status: 'delivered', timestampSeconds: 1782900003 })).toEqual(recorded('wa-webhook-status-delivered'));
  });

  it.each([
    ['130472-experiment', 130472],
    ['131026', 131026],
    ['131049', 131049],
    ['131050-optout', 131050],
    ['132015-held-dropped', 132015],
  ])('is the recorded failed webhook %s', (name, failureCode) => {
    const expected = recorded(`wa-webhook-status-failed-${name}`);
    const status = expected.entry[0]!.changes[0]!.value.statuses[0]!;
    const made = webhook({
      status: 'failed',
      failureCode,
      messageId: status.id!,
      recipient: status.recipient_id!,
      token: status.biz_opaque_callback_data!,
      timestampSeconds: Number(status.timestamp),
    });
    expect(made).toEqual(expected);
  });

  it('has the conversation of old webhook versions when asked', () => {
    const made = webhook({ legacyConversation: true, token: '' }) as ReturnType<typeof recorded>;
    const expected = recorded('wa-webhook-status-sent-legacy-conversation');
    const withoutId = (body: ReturnType<typeof recorded>): unknown => {
      const status = structuredClone(body.entry[0]!.changes[0]!.value.statuses[0]!) as { conversation?: { id?: string } };
      expect(status.conversation!.id).toMatch(/^[0-9a-f]{32}$/);
      delete status.conversation!.id;
      return status;
    };
    expect(withoutId(made)).toEqual(withoutId(expected));
  });

  it('does not price read, and prices a free-form message as free', () => {
    expect(JSON.parse(renderStatus({ ...FACTS, status: 'read' }))).not.toHaveProperty('pricing');
    expect(JSON.parse(renderStatus({ ...FACTS, category: 'service' }))).toMatchObject({
      pricing: { billable: false, type: 'free_customer_service', category: 'service' },
    });
  });

  it('has an entry for each account, and a change for each number or each status', () => {
    const status = (wabaId: string, phoneNumberId: string): Parameters<typeof renderWebhook>[0][number] => ({
      number: { ...NUMBER, wabaId, phoneNumberId },
      json: renderStatus(FACTS),
    });
    const mixed = [status('1', '11'), status('2', '21'), status('1', '12'), status('1', '11')];
    const changes = (shape: 'statuses' | 'changes'): [string, number[]][] =>
      (
        JSON.parse(renderWebhook(mixed, shape)) as { entry: { id: string; changes: { value: { statuses: unknown[] } }[] }[] }
      ).entry.map((entry) => [entry.id, entry.changes.map((change) => change.value.statuses.length)]);
    expect(changes('statuses')).toEqual([
      ['1', [2, 1]],
      ['2', [1]],
    ]);
    expect(changes('changes')).toEqual([
      ['1', [1, 1, 1]],
      ['2', [1]],
    ]);
  });

  it('writes everything outside ASCII as Meta does', () => {
    const json = renderWebhook(
      [{ number: NUMBER, json: renderStatus({ ...FACTS, token: 'Zoë' }), contact: renderContact('1', false, 'Zoë Müller 😀') }],
      'statuses',
    );
    expect(json).toContain('"name":"Zo\\u00eb M\\u00fcller \\ud83d\\ude00"');
    expect(json).toContain('"biz_opaque_callback_data":"Zo\\u00eb"');
    expect(json).toMatch(/^[\x20-\x7e]+$/);
  });
});

describe('signature256', () => {
  it('is the published vector', () => {
    expect(signature256('test-app-secret', '{"object":"whatsapp_business_account"}')).toBe(
      'sha256=b6978b21c4467654c466607663db9b43fae44b71083568df403e0a077089208e',
    );
  });

  it('is the recorded signature of a body with escaped names, and so is the escaping', () => {
    const vector = sample<{
      app_secret: string;
      headers: Record<string, string>;
      raw_body: string;
      sha256_if_you_wrongly_reserialise: string;
    }>('wa-webhook-signed-unicode');
    const reserialised = JSON.stringify(JSON.parse(vector.raw_body));
    expect(signature256(vector.app_secret, vector.raw_body)).toBe(vector.headers['x-hub-signature-256']);
    expect(signature256(vector.app_secret, escapeNonAscii(reserialised))).toBe(vector.headers['x-hub-signature-256']);
    expect(signature256(vector.app_secret, reserialised)).toBe(`sha256=${vector.sha256_if_you_wrongly_reserialise}`);
  });

  it('can be wrong and still well-formed', () => {
    const wrong = wrongSignature256('secret', 'body');
    expect(wrong).toMatch(/^sha256=[0-9a-f]{64}$/);
    expect(wrong).not.toBe(signature256('secret', 'body'));
  });
});
