import { createServer, type Server, type Socket } from 'node:net';
import { Secret } from '#runtime/secret';
import { waitUntil } from '#runtime/wait-until';
import { startSimulator, type RunningSimulator } from '#simulator/start-simulator';
import type { ProviderAdapter, ProviderNumber, SendCall, SendOutcome } from '../provider';
import { whatsAppAdapter } from './whatsapp-adapter';

const NUMBER: ProviderNumber = {
  numberId: 'n',
  mode: 'test',
  providerNumberId: '700600500400301',
  accessToken: new Secret('token'),
};
const DEADLINE_MS = 600;

let simulator: RunningSimulator;
let adapter: ProviderAdapter;

function adapterOf(url: string, connections = 64): ProviderAdapter {
  return whatsAppAdapter({
    liveUrl: 'http://127.0.0.1:1',
    testUrl: url,
    apiVersion: 'v25.0',
    connections,
    connectTimeoutMs: 500,
  });
}

function call(of: ProviderAdapter, to: string, overrides: Partial<SendCall> = {}): Promise<SendOutcome> {
  const built = of.build({ text: 'hello' }, { to, parameters: {} }, 'p1.token');
  if (!built.ok) throw new Error('can not be built');
  const now = performance.now();
  return of.send({
    number: NUMBER,
    body: built.body,
    deadlineAt: now + DEADLINE_MS,
    writeBy: now + 300,
    mayWrite: () => true,
    ...overrides,
  });
}

beforeAll(async () => {
  simulator = await startSimulator({ configuration: { latency: { kind: 'fixed', ms: 1 }, ratePerSecond: null } });
  adapter = adapterOf(simulator.url);
});
afterAll(async () => {
  await adapter.close();
  await simulator.stop();
});

describe('the WhatsApp adapter against the simulator', () => {
  it.each([
    ['an ordinary recipient', '01', 'accepted', 1],
    ['held for quality', '90', 'accepted', 1],
    ['paused', '93', 'accepted', 1],
    ['a status nobody knows', '94', 'accepted', 1],
    ['refused at once', '57', 'fail_recipient', 0],
    ['opted out', '58', 'suppress_recipient', 0],
    ['131000', '60', 'retry_checked', 0],
    ['service down', '64', 'retry_checked', 0],
    ['pair limit', '65', 'recipient_later', 0],
    ['throughput', '66', 'slow_number', 0],
    ['a bare 429', '67', 'slow_number', 0],
    ['unknown error, delivered', '68', 'unknown', 1],
    ['no answer, delivered', '70', 'unknown', 1],
    ['no answer, not delivered', '71', 'unknown', 0],
    ['closed, delivered', '72', 'unknown', 1],
    ['closed, not delivered', '73', 'unknown', 0],
    ['cut off, delivered', '74', 'unknown', 1],
    ['HTML 502', '76', 'unknown', 0],
    ['empty 500', '77', 'unknown', 0],
    ['reset, delivered', '78', 'unknown', 1],
  ])('%s', async (_, last, expected, delivered) => {
    const to = `+120255501${last}`;
    const { answer, writtenAt } = await call(adapter, to);
    expect(answer.class).toBe(expected);
    expect(writtenAt).not.toBeNull();
    // One request, whatever happened to it: nothing in the client repeats a send.
    const { received } = (await simulator.control.summary()).numbers[NUMBER.providerNumberId]!;
    expect(received).toBe(1);
    expect((await simulator.control.recipient(to)).count).toBe(delivered);
    await simulator.control.reset();
  });

  it('ends a call at its deadline, as unknown', async () => {
    const began = performance.now();
    const { answer } = await call(adapter, '+12025550170');
    expect(answer).toMatchObject({ class: 'unknown', providerCode: 'DEADLINE' });
    expect(performance.now() - began).toBeLessThan(DEADLINE_MS + 300);
    await simulator.control.reset();
  });

  it('writes nothing when it is not permitted to in the tick of the write, and keeps the connection', async () => {
    const { answer, writtenAt } = await call(adapter, '+12025550101', { mayWrite: () => false });
    expect({ class: answer.class, writtenAt }).toEqual({ class: 'not_sent', writtenAt: null });
    expect((await simulator.control.summary()).received).toBe(0);
    const next = await call(adapter, '+12025550102');
    expect(next.answer.class).toBe('accepted');
    await simulator.control.reset();
  });

  it('gives up a call that has no connection in time, and never writes it later', async () => {
    const narrow = adapterOf(simulator.url, 1);
    await simulator.control.addRule({ times: 1, action: { kind: 'delay', ms: 250 } });
    const slow = call(narrow, '+12025550101');
    const late = await call(narrow, '+12025550102', { writeBy: performance.now() + 50 });
    expect(late.answer).toMatchObject({ class: 'not_sent', providerCode: 'NOT_WRITTEN_IN_TIME' });
    expect((await slow).answer.class).toBe('accepted');
    expect((await call(narrow, '+12025550103')).answer.class).toBe('accepted');
    expect((await simulator.control.recipient('+12025550102')).count).toBe(0);
    await narrow.close();
    await simulator.control.reset();
  });

  it('asks about a number that is held', async () => {
    expect(await adapter.health(NUMBER)).toEqual({ sendable: true });
    await simulator.control.configure({
      numbers: [
        { phoneNumberId: NUMBER.providerNumberId, health: 'BLOCKED', healthErrors: [{ code: 141006, description: 'Unpaid' }] },
      ],
    });
    expect(await adapter.health(NUMBER)).toMatchObject({ sendable: false, detail: expect.stringContaining('141006') });
  });
});

describe('connections', () => {
  let server: Server;
  let opened: Socket[];
  let url: string;

  beforeAll(async () => {
    opened = [];
    server = createServer((socket) => {
      opened.push(socket);
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  });
  afterAll(() => {
    for (const socket of opened) socket.destroy();
    server.close();
  });

  it('are opened ahead of the first call and used by it', async () => {
    const warm = adapterOf(url);
    warm.warm('test', 3);
    await waitUntil('three connections', () => opened.length === 3);
    const outcome = await call(warm, '+12025550101', { deadlineAt: performance.now() + 100 });
    expect(outcome).toMatchObject({ answer: { class: 'unknown' }, writtenAt: expect.any(Number) });
    expect(opened).toHaveLength(3);
    await warm.close();
  });

  it.each([
    ['nobody listens', 'http://127.0.0.1:1', 'ECONNREFUSED'],
    ['there is no such host', 'http://does-not-exist.invalid', 'E'],
  ])('%s: known not sent', async (_, to, code) => {
    const failed: Array<Error | null> = [];
    const lost = whatsAppAdapter({
      liveUrl: to,
      testUrl: to,
      apiVersion: 'v25.0',
      connections: 1,
      connectTimeoutMs: 500,
      onConnection: (_mode, error) => failed.push(error),
    });
    const { answer, writtenAt } = await call(lost, '+12025550101', { writeBy: performance.now() + 5_000 });
    expect({ class: answer.class, writtenAt }).toEqual({ class: 'not_sent', writtenAt: null });
    expect((answer as { providerCode: string }).providerCode).toContain(code);
    expect(failed[0]).toMatchObject({ code: (answer as { providerCode: string }).providerCode });
    await lost.close();
  });
});
