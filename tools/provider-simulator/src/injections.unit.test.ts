import { request } from 'undici';
import { failureOf, send, templateSend, type SentMessage } from '../test-support/send-message';
import type { RuleInput } from './rules/actions';
import { startSimulator, type RunningSimulator } from './start-simulator';

const TO = '+12025550143';
let simulator: RunningSimulator;

beforeAll(async () => {
  simulator = await startSimulator({ configuration: { latency: { kind: 'fixed', ms: 0 }, ratePerSecond: null } });
});
beforeEach(() => simulator.control.reset());
afterAll(() => simulator.stop());

const withRule = async (rule: RuleInput): Promise<SentMessage> => {
  await simulator.control.addRule(rule);
  return send(simulator.url, templateSend(TO));
};
const failureWith = async (rule: RuleInput): Promise<string> => {
  await simulator.control.addRule(rule);
  return failureOf(send(simulator.url, templateSend(TO), { headersTimeout: rule.action.kind === 'hang' ? 300 : 30_000 }));
};
const deliveries = async (): Promise<string[]> => (await simulator.control.deliveries()).map(({ answer }) => answer);

describe('a rule', () => {
  it('answers any Graph error, with the usual status or another', async () => {
    const usual = await withRule({ action: { kind: 'graph_error', code: 131016 } });
    expect([usual.httpStatus, usual.json.error!.code]).toEqual([500, 131016]);
    await simulator.control.clearRules();
    const other = await withRule({
      action: {
        kind: 'graph_error',
        code: 131056,
        httpStatus: 429,
        subcode: 5,
        details: 'own words',
        retryAfter: 7,
        regainMinutes: 17,
      },
    });
    expect(other.httpStatus).toBe(429);
    expect(other.json.error).toMatchObject({ code: 131056, error_subcode: 5, error_data: { details: 'own words' } });
    expect(other.headers['retry-after']).toBe('7');
    expect(other.headers['x-business-use-case-usage']).toContain('"estimated_time_to_regain_access": 17');
    expect(other.headers['x-app-usage']).toContain('"call_count": 100');
    expect(await deliveries()).toEqual([]);
  });

  it('answers a Graph error although the message is delivered', async () => {
    expect((await withRule({ action: { kind: 'graph_error', code: 1, delivered: true } })).json.error!.code).toBe(1);
    expect(await deliveries()).toEqual(['graph_error']);
  });

  it.each([
    ['html', false],
    ['html', true],
    ['empty', false],
    ['empty', true],
  ] as const)('answers 503 with a body that is %s; delivered: %s', async (body, delivered) => {
    const answer = await withRule({ action: { kind: 'http_error', httpStatus: 503, body, delivered } });
    expect(answer.httpStatus).toBe(503);
    expect(answer.text.includes('<html>')).toBe(body === 'html');
    expect(answer.text === '').toBe(body === 'empty');
    expect(await deliveries()).toEqual(delivered ? ['http_error'] : []);
  });

  it('answers 429 without a body and says when to come back, once', async () => {
    const rule: RuleInput = { action: { kind: 'http_error', httpStatus: 429, body: 'empty', retryAfter: 3 }, times: 1 };
    const answer = await withRule(rule);
    expect([answer.httpStatus, answer.headers['retry-after']]).toEqual([429, '3']);
    expect((await send(simulator.url, templateSend(TO))).httpStatus).toBe(200);
  });

  it.each([true, false])('cuts a 200 in the middle; delivered: %s', async (delivered) => {
    expect(await failureWith({ action: { kind: 'truncate', delivered } })).toMatch(
      /UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH/,
    );
    expect(await deliveries()).toEqual(delivered ? ['truncated'] : []);
  });

  it.each([
    [true, 'close', 'UND_ERR_SOCKET'],
    [false, 'close', 'UND_ERR_SOCKET'],
    [true, 'reset', 'ECONNRESET'],
    [false, 'reset', 'ECONNRESET'],
  ] as const)('drops the connection; delivered: %s, %s', async (delivered, how, code) => {
    expect(await failureWith({ action: { kind: 'drop_connection', delivered, how } })).toBe(code);
    expect(await deliveries()).toEqual(delivered ? ['dropped'] : []);
  });

  it.each([true, false])('never answers; delivered: %s', async (delivered) => {
    expect(await failureWith({ action: { kind: 'hang', delivered } })).toBe('UND_ERR_HEADERS_TIMEOUT');
    expect(await deliveries()).toEqual(delivered ? ['hung'] : []);
  });

  it('delays, and the message counts from its arrival on', async () => {
    await simulator.control.addRule({ action: { kind: 'delay', ms: 150 } });
    const begun = performance.now();
    const sending = send(simulator.url, templateSend(TO));
    await simulator.control.summary();
    await sending;
    expect(performance.now() - begun).toBeGreaterThanOrEqual(149);
    const [delivery] = await simulator.control.deliveries();
    expect(delivery!.wallMicros / 1000).toBeLessThan(Date.now() - 140);
  });

  it.each(['held_for_quality_assessment', 'paused', 'something_new'])('accepts with message_status %s', async (messageStatus) => {
    const answer = await withRule({ action: { kind: 'hold', messageStatus } });
    expect([answer.httpStatus, answer.json.messages![0]!.message_status]).toEqual([200, messageStatus]);
    expect(await deliveries()).toEqual(['accepted']);
  });

  it('lets a token expire until the caller has another, or the rule is gone', async () => {
    const id = await simulator.control.addRule({ action: { kind: 'token_expired' } });
    const code = async (token: string): Promise<unknown> => {
      const { json, httpStatus } = await send(simulator.url, templateSend(TO), { token });
      return [httpStatus, json.error?.code, json.error?.error_subcode];
    };
    expect(await code('old')).toEqual([401, 190, 463]);
    expect(await code('new')).toEqual([200, undefined, undefined]);
    expect(await code('old')).toEqual([401, 190, 463]);
    const health = async (token: string): Promise<number> => {
      const answer = await request(`${simulator.url}/700600500400301?fields=health_status`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.body.dump();
      return answer.statusCode;
    };
    expect([await health('old'), await health('new')]).toEqual([401, 200]);
    await simulator.control.removeRule(id);
    expect(await code('old')).toEqual([200, undefined, undefined]);
    expect(await health('old')).toBe(200);
  });

  it('adds headers of a caller near its limit to a success', async () => {
    await simulator.control.addRule({ action: { kind: 'headers', headers: { 'x-own': 'yes' } } });
    const answer = await withRule({ action: { kind: 'usage', callCount: 93, regainMinutes: 2 } });
    expect(answer.httpStatus).toBe(200);
    expect(answer.headers['x-own']).toBe('yes');
    expect(answer.headers['x-business-use-case-usage']).toContain('"call_count": 93');
    expect(JSON.parse(String(answer.headers['x-app-usage']))).toMatchObject({ call_count: 93 });
  });

  it('acts on the requests it names and as often as it says', async () => {
    await simulator.control.addRule({
      match: { template: 'autumn_offer', nth: 2 },
      action: { kind: 'graph_error', code: 131000 },
    });
    await simulator.control.addRule({
      match: { recipient: '+12025550144' },
      action: { kind: 'graph_error', code: 131026 },
      times: 1,
    });
    const codes: (number | undefined)[] = [];
    for (const to of [TO, TO, TO, '+12025550144', '+12025550144'])
      codes.push((await send(simulator.url, templateSend(to))).json.error?.code);
    expect(codes).toEqual([undefined, 131000, undefined, 131026, undefined]);
    expect(await simulator.control.rules()).toMatchObject([{ applied: 1 }, { applied: 1 }]);
  });

  it('comes before what a magic recipient does', async () => {
    await simulator.control.addRule({ match: { recipient: '+12025550161' }, action: { kind: 'graph_error', code: 131056 } });
    expect((await send(simulator.url, templateSend('+12025550161'))).json.error!.code).toBe(131056);
  });
});
