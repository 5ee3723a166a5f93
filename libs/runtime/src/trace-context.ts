import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  context,
  trace,
  type Attributes,
  type Context,
  type Link,
  type Span,
  type SpanContext,
} from '@opentelemetry/api';
import { describeError } from './describe-error';

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The SDK keeps 128 links a span; a batch of 500 would lose the rest without a word, so we take fewer and sampled ones only. */
const MOST_LINKS = 32;

/** W3C Trace Context, `traceparent`. Anything that is not well-formed is no context: undefined. */
export function parseTraceparent(header: string | undefined | null): SpanContext | undefined {
  const match = header ? TRACEPARENT.exec(header) : null;
  if (!match) return undefined;
  const [, version, traceId, spanId, flags, rest] = match;
  // Version 00 has exactly four fields; later ones may have more; ff is forbidden, and so are ids of zeros.
  if (version === 'ff' || (version === '00' && rest !== undefined) || /^0+$/.test(traceId!) || /^0+$/.test(spanId!))
    return undefined;
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}

export function formatTraceparent(of: SpanContext): string {
  return `00-${of.traceId}-${of.spanId}-${(of.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`;
}

/** The `traceparent` of the active span; undefined where nothing is traced. */
export function currentTraceparent(active: Context = context.active()): string | undefined {
  const span = trace.getSpanContext(active);
  return span && trace.isSpanContextValid(span) ? formatTraceparent(span) : undefined;
}

/** The trace id of the active span, for logs and problem details. */
export function currentTraceId(): string | undefined {
  const span = trace.getSpanContext(context.active());
  return span && trace.isSpanContextValid(span) ? span.traceId : undefined;
}

const tracer = () => trace.getTracer('punctual');

/**
 * A new trace that points at the one that asked for it, for work that happens much later: a parent would keep a trace open for
 * weeks. The link is given at the start, so that samplers see it.
 */
export function startLinked(
  name: string,
  origin: string | undefined,
  attributes: Attributes = {},
  kind: SpanKind = SpanKind.INTERNAL,
): Span {
  const linked = parseTraceparent(origin);
  return tracer().startSpan(name, { root: true, kind, attributes, links: linked ? [{ context: linked }] : [] }, ROOT_CONTEXT);
}

/** A span under the given `traceparent`: the next hop of the same piece of work. */
export function startChild(
  name: string,
  parent: string | undefined,
  attributes: Attributes = {},
  kind: SpanKind = SpanKind.INTERNAL,
): Span {
  const remote = parseTraceparent(parent);
  return tracer().startSpan(name, { kind, attributes }, remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT);
}

/** One span for a whole batch, linked to the traces of its records (sampled ones, 32 at most). */
export function startBatchSpan(
  name: string,
  kind: SpanKind,
  attributes: Attributes,
  traceparents: Iterable<string | undefined>,
): Span {
  const links: Link[] = [];
  for (const traceparent of traceparents) {
    const linked = parseTraceparent(traceparent);
    if (linked && linked.traceFlags & TraceFlags.SAMPLED) links.push({ context: linked });
    if (links.length >= MOST_LINKS) break;
  }
  return tracer().startSpan(name, { root: true, kind, attributes, links }, ROOT_CONTEXT);
}

/** Runs `work` inside the span and ends it, with the error's status if it throws. */
export async function within<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await context.with(trace.setSpan(context.active(), span), work);
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span as failed without quoting what the error may quote. */
export function failSpan(span: Span, error: unknown): void {
  const { type, code, message } = describeError(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  span.setAttribute('error.type', code ?? type);
}
