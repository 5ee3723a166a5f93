import { trace } from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';
import { waitUntil } from '#runtime/wait-until';
import { parseTraceparent } from '#runtime/trace-context';
import { Stage, type Executions } from '../test-support/stage';

const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = tracing;
const spans = new InMemorySpanExporter();
const ORIGIN = '4bf92f3577b34da6a3ce929d0e0e4736';

let stage: Stage;
let executions: Executions;

beforeAll(async () => {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  stage = await Stage.open();
  executions = await stage.executions();
});

afterAll(async () => {
  await stage?.close();
  trace.disable();
});

it('starts a new trace that is linked to the sampled one of the request, and carries it on every message of the slice', async () => {
  const number = stage.number();
  const [sampled, unsampled, untraced] = await stage.campaigns([
    { number, recipients: 3, traceparent: `00-${ORIGIN}-00f067aa0ba902b7-01` },
    { number, traceparent: `00-${ORIGIN}-00f067aa0ba902b7-00` },
    { number },
  ]);
  await stage.plan(sampled!, unsampled!, untraced!);
  await stage.reportCredit([number], 10);
  await stage.releaser().releaseOnce();
  await waitUntil('all executions', () => executions.all.length >= 5);

  const headersOf = (campaign: typeof sampled) =>
    executions.all
      .filter(({ execution }) => execution.scheduleId.equals(campaign!.scheduleId))
      .map(({ traceparent }) => traceparent);
  expect(headersOf(unsampled)).toEqual([undefined]);
  expect(headersOf(untraced)).toEqual([undefined]);
  expect(new Set(headersOf(sampled)).size).toBe(1);

  const carried = parseTraceparent(headersOf(sampled)[0])!;
  expect(carried.traceId).not.toBe(ORIGIN);
  const release = spans.getFinishedSpans().find(({ name }) => name === 'release')!;
  expect(release.spanContext().traceId).toBe(carried.traceId);
  expect(release.parentSpanContext).toBeUndefined();
  expect(release.links.map(({ context }) => context.traceId)).toEqual([ORIGIN]);
  expect(release.attributes['punctual.origin_trace_id']).toBe(ORIGIN);
});
