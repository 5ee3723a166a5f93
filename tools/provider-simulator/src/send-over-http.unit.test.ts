import { request } from 'undici';
import { sample, shapeOf } from '../test-support/samples';
import { send, templateSend } from '../test-support/send-message';
import { startSimulator, type RunningSimulator } from './start-simulator';
import { ManualClock } from './timing/clock';

const NUMBER = '700600500400301';
let simulator: RunningSimulator;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock();
  simulator = await startSimulator({ clock, configuration: { latency: { kind: 'fixed', ms: 0 } } });
});
afterEach(() => simulator.stop());

const refusedCode = async (body: unknown, options?: Parameters<typeof send>[2]): Promise<number | undefined> =>
  (await send(simulator.url, body, options)).json.error?.code;

describe('an accepted send', () => {
  it('is answered as the recorded one', async () => {
    const expected = sample('wa-send-response-accepted');
    const answer = await send(simulator.url, sample('wa-send-template-request').body);
    expect(answer.httpStatus).toBe(expected.http_status);
    expect(shapeOf(answer.json)).toEqual(shapeOf(expected.body));
    expect(answer.json.contacts).toEqual([{ input: '+12025550143', wa_id: '12025550143' }]);
    expect(answer.json.messages![0]!.message_status).toBe('accepted');
    for (const header of Object.keys(expected.headers)) expect(answer.headers).toHaveProperty(header);
    expect(answer.headers['content-type']).toBe(expected.headers['content-type']);
    expect(shapeOf(JSON.parse(String(answer.headers['x-business-use-case-usage'])))).toEqual({
      '900100200300400': (shapeOf(JSON.parse(expected.headers['x-business-use-case-usage']!)) as Record<string, unknown>)[
        '900100200300401'
      ],
    });
  });

  it('tells no message_status for free-form messages', async () => {
    const answer = await send(simulator.url, {
      messaging_product: 'whatsapp',
      to: '+447700900123',
      type: 'text',
      text: { body: 'hi' },
    });
    expect(shapeOf(answer.json)).toEqual(shapeOf(sample('wa-send-response-text-no-status').body));
  });

  it('names no number for a business-scoped user id', async () => {
    const body = templateSend('', { to: undefined, recipient: 'US.10000000000000000001' });
    const answer = await send(simulator.url, body);
    expect(shapeOf(answer.json)).toEqual(shapeOf(sample('wa-send-response-bsuid').body));
    expect((await simulator.control.recipient('US.10000000000000000001')).count).toBe(1);
  });

  it('gets another id each time', async () => {
    const ids = await Promise.all(
      [1, 2, 3].map(async () => (await send(simulator.url, templateSend('+12025550143'))).json.messages![0]!.id),
    );
    expect(new Set(ids).size).toBe(3);
  });

  it('works without a version and on the marketing endpoint', async () => {
    for (const path of [`/${NUMBER}/messages`, `/v25.0/${NUMBER}/marketing_messages`]) {
      const answer = await request(simulator.url + path, {
        method: 'POST',
        headers: { authorization: 'Bearer t' },
        body: JSON.stringify(templateSend('+12025550143')),
      });
      expect(answer.statusCode).toBe(200);
      await answer.body.dump();
    }
  });
});

describe('a refused send', () => {
  it('needs a bearer token, and the right one where the number names it', async () => {
    expect(await refusedCode(templateSend('+12025550143'), { token: null })).toBe(104);
    await simulator.control.configure({ numbers: [{ phoneNumberId: NUMBER, accessToken: 'right' }] });
    const answer = await send(simulator.url, templateSend('+12025550143'), { token: 'wrong' });
    expect([answer.httpStatus, answer.json.error!.code]).toEqual([401, 190]);
    expect(await refusedCode(templateSend('+12025550143'), { token: 'right' })).toBeUndefined();
  });

  it('is 100/33 for an unknown number only when numbers are strict', async () => {
    expect(await refusedCode(templateSend('+12025550143'), { phoneNumberId: '999' })).toBeUndefined();
    await simulator.control.configure({ strictNumbers: true });
    const { error } = (await send(simulator.url, templateSend('+12025550143'), { phoneNumberId: '998' })).json;
    expect([error!.code, error!.error_subcode]).toEqual([100, 33]);
    expect(await refusedCode(templateSend('+12025550143'), { phoneNumberId: '999' })).toBeUndefined();
  });

  it('is 100 for what is no JSON', async () => {
    expect(await refusedCode('{"messaging_product":')).toBe(100);
  });

  it('is 132000 for a wrong count and 132001 for an unknown template when templates are strict', async () => {
    await simulator.control.registerTemplates({ name: 'autumn_offer', language: 'en_US', body: 1 });
    expect(await refusedCode(templateSend('+12025550143'))).toBe(132000);
    const other = templateSend('+12025550143', { template: { name: 'winter', language: { code: 'fr_FR' } } });
    expect(await refusedCode(other)).toBeUndefined();
    await simulator.control.configure({ strictTemplates: true });
    const answer = await send(simulator.url, other);
    expect([answer.httpStatus, answer.json.error!.code]).toEqual([404, 132001]);
  });

  it('is counted by code and never as a delivery', async () => {
    await refusedCode(templateSend('12025550143'));
    await refusedCode(templateSend('+12025550143'), { token: null });
    await send(simulator.url, templateSend('+12025550143'));
    expect(await simulator.control.summary()).toMatchObject({
      received: 3,
      accepted: 1,
      deliveries: 1,
      rejected: { 131009: 1, 104: 1 },
      recipients: { distinct: 1, histogram: { 1: 1 }, most: 1 },
    });
  });
});

describe('the rate of a number', () => {
  const codes = async (count: number, phoneNumberId = NUMBER): Promise<(number | undefined)[]> => {
    const all: (number | undefined)[] = [];
    for (let sent = 0; sent < count; sent += 1) all.push(await refusedCode(templateSend('+12025550143'), { phoneNumberId }));
    return all;
  };

  it('holds to the microsecond over any 990 ms', async () => {
    await simulator.control.configure({ numbers: [{ phoneNumberId: NUMBER, ratePerSecond: 3 }] });
    expect(await codes(2)).toEqual([undefined, undefined]);
    clock.advanceMicros(500_000);
    expect(await codes(2)).toEqual([undefined, 130429]);
    clock.advanceMicros(489_999);
    expect(await codes(1)).toEqual([130429]);
    clock.advanceMicros(1);
    expect(await codes(3)).toEqual([undefined, undefined, 130429]);

    const summary = await simulator.control.summary();
    expect(summary.rejectedByRate).toBe(3);
    expect(summary.numbers[NUMBER]).toMatchObject({ ratePerSecond: 3, received: 8, rejectedByRate: 3, deliveries: 5 });
    expect(summary.numbers[NUMBER]).toMatchObject({ mostIn990Ms: 6, mostIn1000Ms: 8 });
  });

  it('is each number’s own, and can be lifted', async () => {
    await simulator.control.configure({ ratePerSecond: 1 });
    expect(await codes(2)).toEqual([undefined, 130429]);
    expect(await codes(2, '700600500400302')).toEqual([undefined, 130429]);
    await simulator.control.configure({ numbers: [{ phoneNumberId: NUMBER, ratePerSecond: null }] });
    expect(await codes(2)).toEqual([undefined, undefined]);
    expect(await codes(1, '700600500400302')).toEqual([130429]);
  });

  it('is not loosened by a reset', async () => {
    await simulator.control.configure({ ratePerSecond: 1 });
    expect(await codes(1)).toEqual([undefined]);
    await simulator.control.reset();
    expect(await codes(1)).toEqual([130429]);
  });

  it('does not count malformed requests against the limit, but shows them in the window', async () => {
    await simulator.control.configure({ ratePerSecond: 1 });
    expect(await refusedCode(templateSend('12025550143'))).toBe(131009);
    expect(await codes(1)).toEqual([undefined]);
    expect((await simulator.control.summary()).numbers[NUMBER]).toMatchObject({ mostIn1000Ms: 2 });
  });

  it('gives first and last arrival and the achieved rate', async () => {
    for (let sent = 0; sent < 5; sent += 1) {
      await send(simulator.url, templateSend('+12025550143'));
      clock.advanceMicros(250_000);
    }
    expect((await simulator.control.summary()).numbers[NUMBER]).toMatchObject({
      firstArrivalAt: '2026-07-01T10:00:00.000000Z',
      lastArrivalAt: '2026-07-01T10:00:01.000000Z',
      receivedPerSecond: 4,
      deliveredPerSecond: 4,
    });
  });
});

describe('reads', () => {
  const read = async (path: string, token = 'Bearer t'): Promise<{ httpStatus: number; json: Record<string, unknown> }> => {
    const answer = await request(simulator.url + path, { headers: { authorization: token } });
    return { httpStatus: answer.statusCode, json: (await answer.body.json()) as Record<string, unknown> };
  };

  it('tell the health of a number and of its account', async () => {
    await simulator.control.configure({
      numbers: [
        { phoneNumberId: NUMBER, wabaId: '901', health: 'BLOCKED', healthErrors: [{ code: 141006, description: 'Unpaid' }] },
      ],
    });
    const { json } = await read(`/v25.0/${NUMBER}?fields=health_status`);
    expect(json).toMatchObject({
      id: NUMBER,
      health_status: {
        can_send_message: 'BLOCKED',
        entities: [
          { entity_type: 'PHONE_NUMBER', id: NUMBER, can_send_message: 'BLOCKED', errors: [{ error_code: 141006 }] },
          { entity_type: 'WABA', id: '901' },
          { entity_type: 'BUSINESS' },
          { entity_type: 'APP' },
        ],
      },
    });
    expect((await read('/901?fields=health_status')).json).toMatchObject({ health_status: { can_send_message: 'BLOCKED' } });
    expect((await read('/702?fields=health_status')).json).toMatchObject({ health_status: { can_send_message: 'AVAILABLE' } });
  });

  it('tell throughput and messaging limit', async () => {
    await simulator.control.configure({ numbers: [{ phoneNumberId: NUMBER, throughput: 'HIGH', messagingLimit: 'TIER_250' }] });
    const { json } = await read(`/${NUMBER}?fields=throughput,whatsapp_business_manager_messaging_limit`);
    expect(json).toEqual({ throughput: { level: 'HIGH' }, whatsapp_business_manager_messaging_limit: 'TIER_250', id: NUMBER });
  });

  it('list templates in pages', async () => {
    await simulator.control.registerTemplates(
      { name: 'autumn_offer', language: 'en_US', body: ['first_name'], dynamicButtons: [1] },
      { name: 'autumn_offer', language: 'fr_FR', body: 1, status: 'PAUSED', category: 'UTILITY' },
    );
    const first = await read('/v25.0/900100200300400/message_templates?limit=1');
    expect(first.json).toMatchObject({
      data: [{ name: 'autumn_offer', language: 'en_US', status: 'APPROVED', parameter_format: 'NAMED', category: 'MARKETING' }],
    });
    const { after } = (first.json.paging as { cursors: { after: string } }).cursors;
    const second = await read(`/v25.0/900100200300400/message_templates?limit=1&after=${after}`);
    expect(second.json).toMatchObject({
      data: [{ language: 'fr_FR', status: 'PAUSED', parameter_format: 'POSITIONAL', category: 'UTILITY' }],
    });
    expect(second.json.paging).not.toHaveProperty('next');
  });

  it('are refused without a token and at unknown paths', async () => {
    expect(await read(`/${NUMBER}?fields=throughput`, 'none')).toMatchObject({ httpStatus: 401, json: { error: { code: 104 } } });
    expect(await read('/v25.0/me/accounts')).toMatchObject({ httpStatus: 400, json: { error: { code: 2500 } } });
  });
});
