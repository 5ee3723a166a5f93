import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Part } from './lifecycle';

export interface LoadedTelemetry {
  metricsHandler(request: IncomingMessage, response: ServerResponse): void;
  shutdown(): Promise<void>;
}

let loaded: LoadedTelemetry | undefined;

/** Called by telemetry.ts, which is loaded before everything else and must not be imported: importing it starts it. */
export function registerTelemetry(telemetry: LoadedTelemetry | undefined): void {
  loaded = telemetry;
}

/** Prometheus text. Without telemetry there is nothing to tell, which is no error. */
export function serveMetrics(request: IncomingMessage, response: ServerResponse): void {
  if (loaded) return loaded.metricsHandler(request, response);
  response
    .writeHead(200, { 'content-type': 'text/plain; version=0.0.4' })
    .end('# telemetry is not loaded: start with node -r <dist>/libs/runtime/src/telemetry.js\n');
}

/** The first part of a process, so that it stops last: what the others traced while stopping still leaves. */
export function telemetryPart(): Part {
  return { name: 'telemetry', stop: () => loaded?.shutdown() };
}
