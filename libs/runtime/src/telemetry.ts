/**
 * Loaded before everything else: `node -r ./dist/libs/runtime/src/telemetry.js dist/services/api/src/main.js`.
 *
 * Metrics are always collected and served by /metrics. Traces are made and sent only where OTEL_EXPORTER_OTLP_ENDPOINT (or
 * OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) says where to; OTEL_SDK_DISABLED=true turns off both. The other OTEL_* variables
 * (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES) work as usual.
 */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { registerTelemetry } from './loaded-telemetry';

const UNWATCHED = new Set(['/health/live', '/health/ready', '/metrics']);

function serviceName(): string {
  const service = /[\\/]services[\\/]([a-z-]+)[\\/]/.exec(process.argv[1] ?? '')?.[1];
  return process.env.OTEL_SERVICE_NAME ?? (service ? `punctual-${service}` : 'punctual');
}

function start(): void {
  if (process.env.OTEL_SDK_DISABLED === 'true') return;
  const tracing = Boolean(process.env.OTEL_EXPORTER_OTLP_ENDPOINT || process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  // The SDK would otherwise send to a collector on this host that nobody has asked for.
  if (!tracing) process.env.OTEL_TRACES_EXPORTER = 'none';
  process.env.OTEL_LOGS_EXPORTER ??= 'none';
  process.env.OTEL_METRICS_EXPORTER ??= 'none';

  const prometheus = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true });
  const sdk = new NodeSDK({
    serviceName: serviceName(),
    metricReaders: [prometheus],
    ...(tracing ? { traceExporter: new OTLPTraceExporter() } : {}),
    // Following a context through promises costs every promise of the process. Without traces only the api has something to follow:
    // the caller's traceparent, which it keeps with the schedule. (null: none; the type does not say so.)
    ...(tracing || serviceName() === 'punctual-api' ? {} : { contextManager: null as unknown as undefined }),
    instrumentations: [
      new HttpInstrumentation({ ignoreIncomingRequestHook: ({ url }) => UNWATCHED.has(url?.split('?')[0] ?? '') }),
      // Statements are ours and hold no values; parameters are people's data and stay out.
      new PgInstrumentation({ enhancedDatabaseReporting: false, requireParentSpan: true }),
      // On the path of every message: about 0.08 ms of CPU per Redis call and 0.09 ms per HTTP call inside a sampled span, and
      // next to nothing outside of one. Only where somebody looks at traces.
      ...(tracing
        ? [
            new UndiciInstrumentation({ requireParentforSpans: true }),
            new IORedisInstrumentation({ requireParentSpan: true, dbStatementSerializer: (command) => command }),
          ]
        : []),
    ],
  });
  sdk.start();
  registerTelemetry({
    metricsHandler: (request, response) => prometheus.getMetricsRequestHandler(request, response),
    shutdown: () => sdk.shutdown(),
  });
}

start();
