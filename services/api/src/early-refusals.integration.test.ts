import { connect, type Socket } from 'node:net';
import { pause } from '#runtime/pause';
import { waitUntil } from '#runtime/wait-until';
import { createTenantWithNumber, startTestApi, type TestApi } from './test-api';

const HEADERS_DEADLINE_MS = 400;
const BODY_DEADLINE_MS = 500;
const SIXTEEN_MB = 16 * 1_048_576;

let api: TestApi;
let key: string;
beforeAll(async () => {
  api = await startTestApi({
    settings: { HEADERS_DEADLINE_MS: String(HEADERS_DEADLINE_MS), BODY_DEADLINE_MS: String(BODY_DEADLINE_MS) },
  });
  ({ key } = await createTenantWithNumber(api));
});
afterAll(async () => {
  await api?.stop();
});

interface Seen {
  status: number;
  head: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a test looks into whatever comes
  body: any;
  /** Of the connection, while the request was sent. */
  error: string | undefined;
}

/** A connection that does nothing by itself: the test writes to it, and sees all that came until it was closed. */
function open(): { socket: Socket; seen: Promise<Seen> } {
  const { hostname, port } = new URL(api.origin);
  const socket = connect({ port: Number(port), host: hostname });
  let text = '';
  let error: string | undefined;
  socket.on('data', (data) => (text += data.toString()));
  socket.on('error', (raised: NodeJS.ErrnoException) => (error = raised.code));
  const seen = new Promise<Seen>((resolve) =>
    socket.once('close', () => {
      const [head = '', body = ''] = text.split(/\r\n\r\n(.*)/s);
      resolve({ status: Number(head.slice(9, 12)), head, body: body === '' ? null : JSON.parse(body), error });
    }),
  );
  return { socket, seen };
}

const head = (line: string, ...headers: string[]): string =>
  `${[`${line} HTTP/1.1`, 'host: api', ...headers].join('\r\n')}\r\n\r\n`;
const post = (path: string, ...headers: string[]): string => head(`POST ${path}`, 'content-type: application/json', ...headers);
const authorized = (): string => `authorization: Bearer ${key}`;

function expectProblem({ head, status, body }: Seen, code: string): void {
  expect({ status: body?.status, code: body?.code, type: body?.type }).toEqual({
    status,
    code,
    type: `${api.origin}/errors/${code}`,
  });
  expect(body).toMatchObject({ title: expect.any(String), detail: expect.any(String), instance: expect.any(String) });
  expect(head).toMatch(/^content-type: application\/problem\+json/im);
  expect(head).toMatch(/^x-correlation-id: cor_\w+\r?$/im);
}

describe('a request that never ends', () => {
  it.each([
    ['is silent', ''],
    ['trickles on', '"'],
  ])('because its body %s is answered 408 and let go', async (_how, piece) => {
    const { socket, seen } = open();
    socket.write(`${post('/v1/schedules', authorized(), 'content-length: 1000')}{`);
    const trickle = setInterval(() => piece && socket.writable && socket.write(piece), 20);
    const answer = await seen;
    clearInterval(trickle);
    expect(answer.status).toBe(408);
    expectProblem(answer, 'request_stalled');
    expect(answer.body.detail).toContain('0.5 s');
  });

  it('but one that is only slow is taken', async () => {
    const body = JSON.stringify({ name: 'slow', scopes: ['schedules:read'] });
    const { socket, seen } = open();
    const start = post('/v1/api-keys', authorized(), 'connection: close', `content-length: ${body.length}`) + body.slice(0, 10);
    socket.write(start);
    await pause(BODY_DEADLINE_MS / 2);
    socket.write(body.slice(10));
    expect((await seen).status).toBe(201);
  });

  it.each([
    ['nothing', ''],
    ['half of its headers', 'GET /v1/schedules HTTP/1.1\r\nhost: api\r\nx-a'],
  ])('of which %s comes is answered 408 and let go', async (_what, text) => {
    const { socket, seen } = open();
    socket.write(text);
    const answer = await seen;
    expect(answer.status).toBe(408);
    expectProblem(answer, 'request_stalled');
    expect(answer.body.detail).toContain('0.4 s');
  });
});

describe('a request whose body is still to come', () => {
  const nobody = 'authorization: Bearer punctual_test_nobody';
  it.each([
    ['without a valid key', 401, 'unauthorized', () => post('/v1/schedules', nobody, 'content-length: 500')],
    ['with a key in the URL', 400, 'key_in_query', () => post('/v1/schedules?key=x', authorized(), 'content-length: 500')],
    ['that is too large', 413, 'body_too_large', () => post('/v1/schedules', authorized(), 'content-length: 9000000')],
    ['for a path that is not there', 404, 'not_found', () => post('/v1/nothing', authorized(), 'content-length: 500')],
    ['for a file', 415, 'media_type_unsupported', () => post('/v1/audiences', authorized(), 'content-length: 500')],
    [
      'of another kind',
      415,
      'media_type_unsupported',
      () => head('POST /v1/schedules', 'content-type: text/xml', authorized(), 'content-length: 500'),
    ],
  ])('%s is answered before it', async (_what, status, code, request) => {
    const { socket, seen } = open();
    socket.write(request());
    const text = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString())));
    socket.destroy();
    await seen;
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(text).toContain(`"code":"${code}"`);
  });

  it.each([
    ['413', 413, () => post('/v1/schedules', authorized(), `content-length: ${SIXTEEN_MB}`), Buffer.alloc(SIXTEEN_MB)],
    [
      '413 where no length was announced',
      413,
      () => post('/v1/schedules', authorized(), 'transfer-encoding: chunked'),
      Buffer.concat([Buffer.from(`${SIXTEEN_MB.toString(16)}\r\n`), Buffer.alloc(SIXTEEN_MB), Buffer.from('\r\n0\r\n\r\n')]),
    ],
    [
      '401',
      401,
      () => post('/v1/schedules', nobody, 'connection: close', `content-length: ${SIXTEEN_MB}`),
      Buffer.alloc(SIXTEEN_MB),
    ],
    [
      '415',
      415,
      () => head('POST /v1/schedules', 'content-type: a/b', authorized(), 'connection: close', `content-length: ${SIXTEEN_MB}`),
      Buffer.alloc(SIXTEEN_MB),
    ],
    [
      '400 of the HTTP parser',
      400,
      () => post('/v1/schedules', authorized(), 'transfer-encoding: chunked'),
      Buffer.alloc(SIXTEEN_MB),
    ],
  ])('is read on after the %s for a client that looks only when all is sent', async (_what, status, request, body) => {
    for (let round = 0; round < 3; round++) {
      const { socket, seen } = open();
      socket.pause();
      socket.write(request());
      socket.write(body, () => socket.resume());
      const answer = await seen;
      expect([answer.error, answer.status]).toEqual([undefined, status]);
      expect(answer.body.status).toBe(status);
    }
  });
});

it.each([
  ['no HTTP', 'hello\r\n\r\n', 400, 'request_unreadable'],
  ['TLS', '\u0016\u0003\u0001\u0002', 400, 'request_unreadable'],
  ['a method that nobody knows', 'FETCH / HTTP/1.1\r\nhost: api\r\n\r\n', 400, 'request_unreadable'],
  ['another version of HTTP', 'GET / HTTP/3.7\r\nhost: api\r\n\r\n', 400, 'request_unreadable'],
  ['a broken header', head('GET /', 'a\u0001b: c'), 400, 'request_unreadable'],
  ['two lengths', post('/v1/schedules', 'content-length: 3', 'content-length: 4'), 400, 'request_unreadable'],
  ['no host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'request_unreadable'],
  ['headers that are too large', head('GET /', `x: ${'y'.repeat(20_000)}`), 431, 'headers_too_large'],
  ['an expectation', head('GET /', 'expect: a miracle', 'connection: close'), 417, 'expectation_unsupported'],
  ['a method for other servers', head('PROPFIND /v1/schedules', 'connection: close'), 404, 'not_found'],
  ['a method that a path does not have', head('DELETE /v1/schedules', 'connection: close'), 404, 'not_found'],
  ['a tunnel', head('CONNECT example.com:443'), 404, 'not_found'],
  ['a path that is none', head('GET http://', 'connection: close'), 404, 'not_found'],
  [
    'a content type that is none',
    head('POST /v1/schedules', 'content-type: ;', 'content-length: 2', 'connection: close') + '{}',
    401,
    'unauthorized',
  ],
])('%s is answered with a problem', async (_what, text, status, code) => {
  const { socket, seen } = open();
  socket.write(text, 'latin1');
  const answer = await seen;
  expect(answer.status).toBe(status);
  expectProblem(answer, code);
});

it('and so is one that comes on an open connection while the instance stops', async () => {
  const stopped = await startTestApi();
  const { hostname, port } = new URL(stopped.origin);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (data) => (text += data.toString()));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const tenant = JSON.stringify({ name: 'Shop', mode: 'test' });
  const operator = `authorization: Bearer ${stopped.operatorKey}`;
  // The first request keeps the connection busy, or it would be closed as idle.
  socket.write(post('/v1/admin/tenants', operator, `content-length: ${tenant.length}`));
  await stopped.request('GET', '/v1/schedules');
  const stopping = stopped.stop();
  await waitUntil('the door to be closed', () =>
    fetch(stopped.origin).then(
      () => false,
      () => true,
    ),
  );
  socket.write(tenant + head('GET /v1/schedules', operator));
  await closed;
  await stopping;
  expect(text).toMatch(/^HTTP\/1\.1 201 .*HTTP\/1\.1 503 .*application\/problem\+json.*"code":"unavailable"/s);
});
