import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { waitUntil } from '../wait-until';
import { lingerAfterAnswers, type Lingering, type LingerOptions } from './linger-after-answers';

const MEGABYTE = 1_048_576;
const servers: Server[] = [];

interface Served {
  port: number;
  lingering?: Lingering;
  connections(): Promise<number>;
}

async function serve(answer: RequestListener, options: LingerOptions | null): Promise<Served> {
  const server = createServer(answer);
  servers.push(server);
  const lingering = options === null ? undefined : lingerAfterAnswers(server, options);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const connections = promisify(server.getConnections.bind(server)) as () => Promise<number>;
  return { port: (server.address() as AddressInfo).port, lingering, connections };
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
});

function post(port: number, bytes: number): { socket: Socket; closed: Promise<{ text: string; error?: string }> } {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  let error: string | undefined;
  socket.on('data', (data) => (text += data.toString()));
  socket.on('error', (raised: NodeJS.ErrnoException) => (error = raised.code));
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes}\r\n\r\n`);
  return { socket, closed: new Promise((closed) => socket.once('close', () => closed({ text, error }))) };
}

const refuse: RequestListener = (_request, response) => void response.writeHead(413, { connection: 'close' }).end('too large');

/** A client that writes all of its request before it looks for an answer, as many libraries do. */
async function blocking(port: number): Promise<{ text: string; error?: string }> {
  const { socket, closed } = post(port, 16 * MEGABYTE);
  socket.pause();
  socket.end(Buffer.alloc(16 * MEGABYTE), () => socket.resume());
  return closed;
}

it('an answer reaches a client that is still sending; without lingering it is lost', async () => {
  const { port } = await serve(refuse, {});
  for (let round = 0; round < 5; round++) {
    const { text, error } = await blocking(port);
    expect([error, text]).toEqual([undefined, expect.stringMatching(/^HTTP\/1\.1 413 .*too large/s)]);
  }
  const careless = await serve(refuse, null);
  const outcomes = [];
  for (let round = 0; round < 5; round++) outcomes.push(await blocking(careless.port));
  expect(outcomes.filter(({ error }) => error !== undefined).length).toBeGreaterThan(0);
});

it('one who only trickles on is left after a while, and so is one who falls silent', async () => {
  const trickled = await serve(refuse, { mostMs: 150, quietMs: 10_000 });
  const trickling = post(trickled.port, MEGABYTE);
  const trickle = setInterval(() => trickling.socket.write('x'), 10);
  const { text } = await trickling.closed;
  clearInterval(trickle);
  expect(text).toContain('too large');

  const silenced = await serve(refuse, { mostMs: 60_000, quietMs: 50 });
  const silent = post(silenced.port, MEGABYTE);
  await once(silent.socket, 'end');
  expect(await silenced.connections()).toBe(1);
  await waitUntil('the server to leave', async () => (await silenced.connections()) === 0);
  silent.socket.destroy();
});

it('a connection whose body comes to its end after all goes on', async () => {
  const { port } = await serve((_request, response) => void response.writeHead(404).end('nothing'), { quietMs: 60_000 });
  const { socket, closed } = post(port, 5);
  await once(socket, 'data');
  socket.write('hello');
  socket.end('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect((await closed).text.match(/HTTP\/1\.1 404/g)).toHaveLength(2);
});

it('a server that closes waits for nobody', async () => {
  const { port, lingering, connections } = await serve(refuse, { mostMs: 60_000, quietMs: 60_000 });
  const { socket } = post(port, MEGABYTE);
  await once(socket, 'end');
  expect(await connections()).toBe(1);
  lingering!.close();
  await waitUntil('the server to leave', async () => (await connections()) === 0);
  socket.destroy();
});
