import { metrics, type Attributes } from '@opentelemetry/api';

/** Labels are closed words (a topic, a reason, an outcome), never ids: every combination is a series that is kept for ever. */
export type Labels = Record<string, string | number | boolean>;

export interface Counter {
  add(count: number, labels?: Labels): void;
}

export interface Histogram {
  record(value: number, labels?: Labels): void;
}

const meter = () => metrics.getMeter('punctual');

export function counter(name: string, description: string): Counter {
  const instrument = meter().createCounter(name, { description });
  return { add: (count, labels) => instrument.add(count, labels as Attributes) };
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Durations are recorded in seconds, as Prometheus wants them; the name ends in `_seconds`. */
export function histogram(
  name: string,
  description: string,
  { unit = 's', buckets = SECONDS }: { unit?: string; buckets?: number[] } = {},
): Histogram {
  const instrument = meter().createHistogram(name, { description, unit, advice: { explicitBucketBoundaries: buckets } });
  return { record: (value, labels) => instrument.record(value, labels as Attributes) };
}

/** `observe` is asked whenever somebody scrapes; it must be cheap. Answers a function that ends the observation. */
export function gauge(
  name: string,
  description: string,
  observe: () => Iterable<{ value: number; labels?: Labels }>,
): () => void {
  const instrument = meter().createObservableGauge(name, { description });
  const callback: Parameters<typeof instrument.addCallback>[0] = (result) => {
    for (const { value, labels } of observe()) result.observe(value, labels as Attributes);
  };
  instrument.addCallback(callback);
  return () => instrument.removeCallback(callback);
}
