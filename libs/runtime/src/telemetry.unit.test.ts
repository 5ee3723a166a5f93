import { createServer, request, type Server } from 'node:http';
import { trace } from '@opentelemetry/api';
import { serveMetrics } from './loaded-telemetry';
import { counter, gauge, histogram } from './metrics';
import { currentTraceparent, parseTraceparent, startBatchSpan, startLinked, within } from './trace-context';

let server: Server;
const given = { ...process.env };

async function metrics(): Promise<string> {
  const { port } = server.address() as { port: number };
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/metrics' }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk)).on('end', () => resolve(text));
    })
      .on('error', reject)
      .end();
  });
}

beforeAll(async () => {
  server = createServer(serveMetrics);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  server.close();
  process.env = given;
});

it('serves a hint before telemetry is loaded, and metrics after', async () => {
  expect(await metrics()).toContain('telemetry is not loaded');
  // Nothing listens there; what matters is that a place is named.
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:1';
  process.env.OTEL_SERVICE_NAME = 'punctual-test';
  await import('#runtime/telemetry');
  counter('punctual_test_things', 'Things').add(3, { reason: 'paused' });
  histogram('punctual_test_seconds', 'Seconds').record(0.004, { outcome: 'done' });
  const end = gauge('punctual_test_level', 'Level', () => [{ value: 7, labels: { lane: 'a' } }]);
  const text = await metrics();
  expect(text).toMatch(/punctual_test_things_total\{reason="paused"\} 3/);
  expect(text).toMatch(/punctual_test_seconds_bucket\{outcome="done",le="0.005"\} 1/);
  expect(text).toMatch(/punctual_test_level\{lane="a"\} 7/);
  expect(text).toContain('service_name="punctual-test"');
  end();
});

it('links a later trace to its origin instead of continuing it, and a batch to its sampled records only', async () => {
  const origin = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const unsampled = '00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';
  const due = startLinked('run due', origin, { 'punctual.schedule': 'x' });
  const inside = await within(due, async () => currentTraceparent());
  expect(parseTraceparent(inside)).toMatchObject({ traceFlags: 1 });
  expect(inside).not.toContain('4bf92f3577b34da6a3ce929d0e0e4736');
  expect((due as unknown as { links: { context: { traceId: string } }[] }).links.map(({ context }) => context.traceId)).toEqual([
    '4bf92f3577b34da6a3ce929d0e0e4736',
  ]);
  const batch = startBatchSpan('process x', 1, {}, [
    ...Array.from({ length: 60 }, () => origin),
    unsampled,
    undefined,
    'nonsense',
  ]);
  expect((batch as unknown as { links: unknown[] }).links).toHaveLength(32);
  batch.end();
  expect(trace.getActiveSpan()).toBeUndefined();
});

it('marks a span that failed, without what the error may quote', async () => {
  const span = startLinked('work', undefined);
  await expect(within(span, () => Promise.reject(new Error('no route to +4915112345678')))).rejects.toThrow();
  expect((span as unknown as { status: unknown }).status).toEqual({ code: 2, message: 'no route to [digits]' });
});
