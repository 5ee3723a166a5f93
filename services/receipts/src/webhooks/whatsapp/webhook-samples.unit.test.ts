import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readAttemptToken } from '#contracts/attempt-token';
import { MESSAGE_ERRORS } from '#contracts/words';
import { factsOfEvidence, factsOfOwn, mergeFacts, nothingKnown } from '../../status/message-facts';
import { statusOf } from '../../status/message-status';
import { headersOf, isPackedBy, packBody, unpackBody } from '../pack-body';
import { meaningOfCode } from './error-codes';
import { parseWhatsAppWebhook, UnreadableWebhook } from './parse-webhook';
import { answerVerification, hasValidSignature } from './verify-signature';

/** The key that the tokens of the samples were made with. */
const TOKEN_KEY = Buffer.alloc(32, 7);
const RECEIVED_AT = 1_782_999_999_000;
const sample = (name: string) => readFileSync(join(__dirname, 'samples', `${name}.json`));
const parse = (name: string) => parseWhatsAppWebhook(sample(name), RECEIVED_AT);
const WAMID = 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI0QTFGMDlDMjdERTgzQjU1MDEA';

describe('statuses', () => {
  it('sent: names its attempt by our token', () => {
    const { statuses } = parse('wa-webhook-status-sent');
    expect(statuses).toEqual([
      {
        providerMessageId: WAMID,
        token: expect.any(String),
        kind: 'sent',
        unknownStatus: null,
        providerAtMs: 1_782_900_000_000,
        error: null,
      },
    ]);
    expect(readAttemptToken(TOKEN_KEY, statuses[0]!.token!)?.attempt).toBe(1);
  });

  it('sent, as older versions tell it: without a token, found by the provider’s id', () => {
    expect(parse('wa-webhook-status-sent-legacy-conversation').statuses).toEqual([
      expect.objectContaining({ providerMessageId: WAMID, token: null, kind: 'sent' }),
    ]);
  });

  it('delivered', () => {
    expect(parse('wa-webhook-status-delivered').statuses).toEqual([expect.objectContaining({ kind: 'delivered' })]);
  });

  it.each([
    ['131049', 'recipient_limit_reached'],
    ['131026', 'recipient_unreachable'],
    ['131050-optout', 'recipient_opted_out'],
    ['130472-experiment', 'experiment_holdout'],
    ['132015-held-dropped', 'template_paused'],
  ])('failed %s is %s', (name, code) => {
    const [status] = parse(`wa-webhook-status-failed-${name}`).statuses;
    expect(status).toMatchObject({ kind: 'failed', error: { code: name.split('-')[0], text: expect.any(String) } });
    expect(meaningOfCode(status!.error!.code)).toBe(code);
    expect(readAttemptToken(TOKEN_KEY, status!.token!)).not.toBeNull();
  });

  it('resolves an outcome that was uncertain', () => {
    const [status] = parse('wa-webhook-resolves-unknown').statuses;
    const { attempt } = readAttemptToken(TOKEN_KEY, status!.token!)!;
    const at = status!.providerAtMs - 10_000;
    const about = { step: 2, at, position: 0, revision: 1, dueAt: at };
    const uncertain = factsOfOwn({ ...about, kind: 'uncertain', attempt, reason: 'deadline', since: at, until: at });
    expect(statusOf(mergeFacts(nothingKnown, uncertain)).status).toBe('uncertain');
    const said = factsOfEvidence({
      attempt,
      kind: 'sent',
      at: status!.providerAtMs,
      recordedAt: RECEIVED_AT,
      providerMessageId: status!.providerMessageId,
      error: null,
    });
    const resolved = mergeFacts(uncertain, said);
    expect(statusOf(resolved)).toMatchObject({ status: 'sent', reachedProvider: 'yes' });
    expect(resolved.provider?.id).toBe('wamid.HBgMNDQ3NzAwOTAwMTIzFQIAERgSNTVFRTAxQjdDOUQ0QTJGMzg3AA==');
  });

  it('a token that somebody else made is not ours', () => {
    const [status] = parse('wa-webhook-status-sent').statuses;
    expect(readAttemptToken(Buffer.alloc(32, 8), status!.token!)).toBeNull();
  });
});

describe('everything else', () => {
  it.each([
    ['wa-webhook-user-preferences-stop', 'user_preferences'],
    ['wa-webhook-inbound-stop-text', 'messages.messages'],
    ['wa-webhook-template-paused', 'message_template_status_update'],
    ['wa-webhook-template-disabled', 'message_template_status_update'],
    ['wa-webhook-phone-throughput-upgrade', 'phone_number_quality_update'],
    ['wa-webhook-account-restriction', 'account_update'],
  ])('%s has no status and is counted', (name, field) => {
    expect(parse(name)).toEqual({ statuses: [], ignored: { [field]: 1 } });
  });

  it('reads every status of every change of every entry', () => {
    const status = (id: string) => ({ id, status: 'sent', timestamp: '1782900000' });
    const change = (...ids: string[]) => ({ field: 'messages', value: { statuses: ids.map(status) } });
    const body = { entry: [{ changes: [change('a', 'b'), change('c')] }, { changes: [change('d')] }] };
    const { statuses } = parseWhatsAppWebhook(Buffer.from(JSON.stringify(body)), RECEIVED_AT);
    expect(statuses.map(({ providerMessageId }) => providerMessageId)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('keeps statuses that it does not know, and is not stopped by anything odd', () => {
    const body = {
      entry: [
        null,
        { changes: 'none' },
        {
          time: 1_782_900_001,
          changes: [
            {
              field: 'messages',
              value: {
                statuses: [{ id: 'a', status: 'warning' }, { status: 'sent' }, 7, { id: 'b' }],
                errors: [{ code: 130429 }],
              },
            },
            { value: 1 },
          ],
        },
      ],
    };
    expect(parseWhatsAppWebhook(Buffer.from(JSON.stringify(body)), RECEIVED_AT)).toEqual({
      statuses: [
        {
          providerMessageId: 'a',
          token: null,
          kind: 'unknown',
          unknownStatus: 'warning',
          providerAtMs: 1_782_900_001_000,
          error: null,
        },
      ],
      ignored: { statuses: 2, 'messages.errors': 1, unnamed: 1 },
    });
  });

  it.each(['', 'not json', '[]', '7', 'null'])('calls %p unreadable', (text) => {
    expect(() => parseWhatsAppWebhook(Buffer.from(text), RECEIVED_AT)).toThrow(UnreadableWebhook);
  });

  it('has a meaning of ours for every code', () => {
    for (const code of ['0', '1', '131026', '222', '139999', 'none', '']) expect(MESSAGE_ERRORS).toContain(meaningOfCode(code));
    expect(meaningOfCode('222')).toBe('credentials_invalid');
    expect(meaningOfCode('139999')).toBe('request_rejected');
  });
});

describe('signature', () => {
  it('covers the bytes as they came, \\uXXXX and all', () => {
    const {
      app_secret: secret,
      headers,
      raw_body: raw,
      sha256_if_you_wrongly_reserialise: wrong,
    } = JSON.parse(sample('wa-webhook-signed-unicode').toString()) as {
      app_secret: string;
      headers: Record<string, string>;
      raw_body: string;
      sha256_if_you_wrongly_reserialise: string;
    };
    const body = Buffer.from(raw);
    const header = headers['x-hub-signature-256'];
    expect(hasValidSignature(secret, body, header)).toBe(true);
    const rewritten = Buffer.from(JSON.stringify(JSON.parse(raw)));
    expect(createHmac('sha256', secret).update(rewritten).digest('hex')).toBe(wrong);
    expect(hasValidSignature(secret, rewritten, header)).toBe(false);
    expect(parseWhatsAppWebhook(body, RECEIVED_AT)).toEqual({ statuses: [], ignored: { 'messages.messages': 1 } });
  });

  it('fits the published vector', () => {
    const body = Buffer.from('{"object":"whatsapp_business_account"}');
    const header = 'sha256=b6978b21c4467654c466607663db9b43fae44b71083568df403e0a077089208e';
    expect(hasValidSignature('test-app-secret', body, header)).toBe(true);
    for (const bad of [
      header.slice(0, -1),
      header.slice(7),
      `${header}0`,
      header.replace('b6', 'b7'),
      'sha256=',
      undefined,
      ['a'],
    ]) {
      expect(hasValidSignature('test-app-secret', body, bad)).toBe(false);
    }
  });
});

it('answers the verification with the challenge, only for the right mode and token', () => {
  const { query, response } = JSON.parse(sample('wa-webhook-verify-get').toString()) as {
    query: Record<string, string>;
    response: { body: string };
  };
  expect(answerVerification('punctual-verify-1', query)).toBe(response.body);
  expect(answerVerification('punctual-verify-2', query)).toBeNull();
  expect(answerVerification('punctual-verify-1', { ...query, 'hub.mode': 'other' })).toBeNull();
  expect(answerVerification('punctual-verify-1', { ...query, 'hub.verify_token': ['punctual-verify-1'] })).toBeNull();
  expect(answerVerification('punctual-verify-1', {})).toBeNull();
});

it('packs large bodies so that a broker takes them, and small ones not at all', async () => {
  const small = Buffer.from('{"entry":[]}');
  expect(await packBody(small)).toEqual({ bytes: small, isPacked: false });
  const large = Buffer.from(
    JSON.stringify({ entry: Array.from({ length: 30_000 }, (_, id) => ({ id, time: 1_782_900_000 + id })) }),
  );
  const packed = await packBody(large);
  expect(packed.isPacked).toBe(true);
  expect(packed.bytes.length).toBeLessThan(large.length / 2);
  for (const body of [small, large, gzipSync(small), Buffer.from([0x1f, 0x8b])]) {
    const { bytes, isPacked } = await packBody(body);
    expect(unpackBody({ bytes, isPacked: isPackedBy(headersOf(isPacked) ?? {}) })).toEqual(body);
  }
});
