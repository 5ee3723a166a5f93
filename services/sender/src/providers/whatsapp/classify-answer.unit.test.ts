import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'undici';
import { ANSWER_FACTS, type ProviderAnswer } from '../answer';
import { classifyAnswer, type HttpAnswer } from './classify-answer';
import { classifyFailure } from './classify-failure';
import { KNOWN_CODES } from './error-table';

const NOW = Date.UTC(2027, 2, 28, 1, 30);
const SAMPLES = join(__dirname, 'samples');

function sample(file: string): HttpAnswer {
  const { http_status, headers, body } = JSON.parse(readFileSync(join(SAMPLES, file), 'utf8'));
  return { status: http_status, headers, body: JSON.stringify(body) };
}

function rejection(code: number, facts: Partial<HttpAnswer> & { subcode?: number; details?: string } = {}): HttpAnswer {
  const error = { message: `(#${code}) no`, code, error_subcode: facts.subcode, error_data: { details: facts.details ?? 'why' } };
  return { status: facts.status ?? 400, headers: facts.headers ?? {}, body: JSON.stringify({ error }) };
}

describe('what an answer of the Cloud API means', () => {
  it.each([
    [
      'wa-send-response-accepted.json',
      { class: 'accepted', providerStatus: 'accepted', providerMessageId: expect.stringMatching(/^wamid\./) },
    ],
    ['wa-send-response-held.json', { class: 'accepted', providerStatus: 'held' }],
    ['wa-send-response-paused.json', { class: 'accepted', providerStatus: 'held' }],
    ['wa-send-response-text-no-status.json', { class: 'accepted', providerStatus: 'accepted' }],
    ['wa-send-response-bsuid.json', { class: 'accepted', providerStatus: 'accepted' }],
    ['wa-error-130429-throughput.json', { class: 'slow_number', code: 'provider_throttled', waitMs: 1_000 }],
    ['wa-error-131056-pair.json', { class: 'recipient_later', growing: expect.arrayContaining([1_000, 4_000, 16_000, 64_000]) }],
    ['wa-error-131048-spam.json', { class: 'pause_number', growing: [3_600_000, 14_400_000, 86_400_000] }],
    ['wa-error-132000-param-count.json', { class: 'template_params', code: 'template_parameters' }],
    ['wa-error-132001-template-missing.json', { class: 'fail_campaign', code: 'template_missing' }],
    ['wa-error-190-token-expired.json', { class: 'stop_tenant', code: 'credentials_invalid', providerCode: '190/463' }],
    ['wa-error-100-invalid-parameter.json', { class: 'fail_request', code: 'request_rejected', alert: true }],
    ['wa-error-4-app-limit.json', { class: 'slow_app', waitMs: 17 * 60_000 }],
    ['wa-error-131042-payment.json', { class: 'stop_waba', code: 'account_blocked' }],
    ['wa-error-131000-something-wrong.json', { class: 'retry_checked', code: 'provider_unavailable', waitMs: 0 }],
    ['wa-error-2-service.json', { class: 'retry_checked', waitMs: 300_000 }],
    ['wa-error-131047-reengagement.json', { class: 'fail_recipient', code: 'outside_service_window' }],
  ])('%s', (file, expected) => {
    expect(classifyAnswer(sample(file), NOW)).toMatchObject(expected);
  });

  it('has seen every sample of an answer', () => {
    const answers = readdirSync(SAMPLES).filter((file) => /^wa-(error|send-response)-/.test(file));
    expect(answers).toHaveLength(17);
  });

  it.each([
    [0, 'stop_tenant'],
    [1, 'unknown'],
    [2, 'retry_checked'],
    [3, 'stop_tenant'],
    [4, 'slow_app'],
    [10, 'stop_tenant'],
    [17, 'slow_app'],
    [33, 'stop_number'],
    [100, 'fail_request'],
    [102, 'stop_tenant'],
    [104, 'stop_tenant'],
    [190, 'stop_tenant'],
    [200, 'stop_tenant'],
    [299, 'stop_tenant'],
    [341, 'slow_app'],
    [368, 'stop_waba'],
    [506, 'fail_request'],
    [613, 'slow_app'],
    [80007, 'slow_waba'],
    [130403, 'fail_recipient'],
    [130429, 'slow_number'],
    [130472, 'fail_recipient'],
    [130497, 'fail_recipient'],
    [131000, 'retry_checked'],
    [131005, 'stop_tenant'],
    [131008, 'fail_request'],
    [131009, 'fail_request'],
    [131016, 'retry_checked'],
    [131020, 'fail_request'],
    [131021, 'fail_recipient'],
    [131026, 'fail_recipient'],
    [131030, 'fail_recipient'],
    [131031, 'stop_waba'],
    [131037, 'stop_number'],
    [131041, 'fail_request'],
    [131042, 'stop_waba'],
    [131045, 'stop_number'],
    [131047, 'fail_recipient'],
    [131048, 'pause_number'],
    [131049, 'fail_recipient'],
    [131050, 'suppress_recipient'],
    [131051, 'fail_request'],
    [131053, 'retry_checked'],
    [131055, 'fail_request'],
    [131056, 'recipient_later'],
    [131057, 'pause_number'],
    [131062, 'fail_recipient'],
    [131063, 'fail_campaign'],
    [131064, 'stop_waba'],
    [131200, 'fail_request'],
    [131215, 'fail_request'],
    [132000, 'template_params'],
    [132001, 'fail_campaign'],
    [132005, 'template_params'],
    [132007, 'fail_campaign'],
    [132008, 'template_params'],
    [132012, 'template_params'],
    [132015, 'pause_template'],
    [132016, 'fail_campaign'],
    [132018, 'template_params'],
    [132068, 'fail_campaign'],
    [132069, 'pause_template'],
    [133000, 'stop_number'],
    [133004, 'retry_checked'],
    [133010, 'stop_number'],
    [133016, 'stop_number'],
    [134011, 'fail_campaign'],
    [134100, 'fail_request'],
    [134101, 'pause_template'],
    [134102, 'fail_campaign'],
    [135000, 'fail_request'],
    [137000, 'fail_recipient'],
    [2494100, 'pause_number'],
  ])('code %d is %s, whatever its HTTP status', (code, expected) => {
    for (const status of [400, 429, 500, 503]) expect(classifyAnswer(rejection(code, { status }), NOW).class).toBe(expected);
  });

  it('holds the number and fails nothing when the object is not there for us (100 with subcode 33)', () => {
    expect(classifyAnswer(rejection(100, { subcode: 33 }), NOW).class).toBe('stop_number');
  });

  it('takes an unlisted code as a rejection under 4xx and as unknown under 5xx', () => {
    expect(classifyAnswer(rejection(139_999), NOW)).toMatchObject({ class: 'fail_request', alert: true });
    expect(classifyAnswer(rejection(139_999, { status: 500 }), NOW)).toMatchObject({ class: 'unknown', alert: true });
  });

  it.each([
    ['an HTML 502', { status: 502, headers: {}, body: '<html>bad gateway</html>' }, 'unknown'],
    ['an empty 500', { status: 500, headers: {}, body: '' }, 'unknown'],
    ['408', { status: 408, headers: {}, body: '' }, 'unknown'],
    ['499', { status: 499, headers: {}, body: '' }, 'unknown'],
    ['a 200 cut short', { status: 200, headers: {}, body: '{"messaging_product":"whatsapp","messages":[{"i' }, 'unknown'],
    ['a 200 without a message id', { status: 200, headers: {}, body: '{"messages":[]}' }, 'unknown'],
    ['a 404 that is not from the Graph API', { status: 404, headers: {}, body: 'not here' }, 'fail_request'],
    ['413', { status: 413, headers: {}, body: '' }, 'fail_request'],
    ['a bare 429', { status: 429, headers: {}, body: '' }, 'slow_number'],
  ] as const)('%s', (_, answer, expected) => {
    expect(classifyAnswer(answer, NOW).class).toBe(expected);
  });

  it('waits as long as Retry-After asks, in seconds or as a date, but never less than the code needs', () => {
    const wait = (header: string) =>
      (classifyAnswer(rejection(130429, { headers: { 'retry-after': header } }), NOW) as { waitMs: number }).waitMs;
    expect(wait('7')).toBe(7_000);
    expect(wait(new Date(NOW + 90_000).toUTCString())).toBe(90_000);
    expect(wait(new Date(NOW - 90_000).toUTCString())).toBe(1_000);
    expect(wait('soon')).toBe(1_000);
    expect(wait('99999999')).toBe(86_400_000);
  });

  it('gives every known code a class with a fate, and every failing one an error code of ours', () => {
    for (const code of KNOWN_CODES) {
      const answer: ProviderAnswer = classifyAnswer(rejection(code), NOW);
      expect(ANSWER_FACTS[answer.class]).toBeDefined();
      expect(answer.class).not.toBe('accepted');
    }
  });
});

describe('what it means when no answer comes', () => {
  const { cases } = JSON.parse(readFileSync(join(SAMPLES, 'transport-outcomes.json'), 'utf8')) as {
    cases: Array<{ failure: string; bytes_sent: boolean | string; attempt: 'NOT_SENT' | 'UNKNOWN' }>;
  };

  // A crash leaves nobody to classify anything: the deadline sweeper speaks for it.
  it.each(cases.filter(({ bytes_sent }) => typeof bytes_sent === 'boolean'))('$failure', ({ failure, bytes_sent, attempt }) => {
    const code = /[A-Z][A-Z_]{3,}/.exec(failure)?.[0];
    const error = Object.assign(new Error(failure), code ? { code } : {});
    const answer = classifyFailure({ written: bytes_sent as boolean, error });
    expect(answer.class).toBe(attempt === 'NOT_SENT' ? 'not_sent' : 'unknown');
  });

  it('shows a code and never the text of an error, which may hold an address', () => {
    const error = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:443'), { code: 'ECONNREFUSED' });
    expect(classifyFailure({ written: false, error })).toMatchObject({
      providerCode: 'ECONNREFUSED',
      text: expect.not.stringContaining('10.1'),
    });
  });

  it.each(['two\nlines', 'a\u0000b', 'kľúč'])('holds the account when no header can carry its token, %j', async (token) => {
    const client = new Client('http://127.0.0.1:1');
    const headers = { authorization: `Bearer ${token}` };
    const error: unknown = await client.request({ method: 'POST', path: '/', headers }).catch((refused: unknown) => refused);
    await client.destroy();
    expect(classifyFailure({ written: false, error })).toMatchObject({
      class: 'stop_tenant',
      code: 'credentials_invalid',
      alert: true,
    });
  });
});
