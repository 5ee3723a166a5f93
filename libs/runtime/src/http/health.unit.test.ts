import { request } from 'node:http';
import fastify from 'fastify';
import { Lifecycle } from '../lifecycle';
import { addHealthRoutes, healthServer } from './health';

async function get(port: number, path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk)).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    })
      .on('error', reject)
      .end();
  });
}

it('answers while the process starts, when it runs, and when a part fails', async () => {
  const lifecycle = new Lifecycle();
  const server = healthServer(lifecycle, { host: '127.0.0.1', port: 0 });
  let release: () => void = () => undefined;
  let sick = false;
  lifecycle.add(server).add({
    name: 'kafka',
    start: () => new Promise((resolve) => (release = resolve)),
    notAlive: () => (sick ? 'no fetch for 60 s' : undefined),
  });
  const starting = lifecycle.start();
  await new Promise(setImmediate);
  expect(await get(server.port, '/health/ready')).toEqual({
    status: 503,
    text: '{"status":"not_ready","reasons":["starting: kafka"]}',
  });
  expect((await get(server.port, '/health/live')).status).toBe(200);
  release();
  await starting;
  expect(await get(server.port, '/health/ready')).toEqual({ status: 200, text: '{"status":"ok"}' });
  expect((await get(server.port, '/metrics?x=1')).status).toBe(200);
  expect((await get(server.port, '/other')).status).toBe(404);
  sick = true;
  expect(await get(server.port, '/health/live')).toEqual({
    status: 503,
    text: '{"status":"not_alive","reasons":["kafka: no fetch for 60 s"]}',
  });
  await lifecycle.stop();
});

it('answers the same inside a Fastify application', async () => {
  const lifecycle = new Lifecycle();
  const app = fastify();
  addHealthRoutes(app, lifecycle);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  expect(await get(port, '/health/ready')).toEqual({ status: 503, text: '{"status":"not_ready","reasons":["new"]}' });
  await lifecycle.start();
  expect((await get(port, '/health/ready')).status).toBe(200);
  await app.close();
});
