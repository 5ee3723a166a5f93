import { z } from 'zod';
import type { RandomSource } from './random';

const milliseconds = z.number().min(0).max(86_400_000);

/** How long something takes. `lognormal` is drawn so that half are below p50 and one in a hundred is above p99. */
export const latencySchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), ms: milliseconds }),
  z
    .strictObject({ kind: z.literal('uniform'), minMs: milliseconds, maxMs: milliseconds })
    .refine((value) => value.minMs <= value.maxMs, { message: 'minMs must not exceed maxMs' }),
  z
    .strictObject({ kind: z.literal('lognormal'), p50Ms: milliseconds.min(0.001), p99Ms: milliseconds })
    .refine((value) => value.p50Ms <= value.p99Ms, { message: 'p50Ms must not exceed p99Ms' }),
]);

export type Latency = z.infer<typeof latencySchema>;
export type LatencySampler = () => number;

/** The 99th percentile of the standard normal distribution. */
const NORMAL_P99 = 2.3263478740408408;

export function latencySampler(latency: Latency, random: RandomSource): LatencySampler {
  switch (latency.kind) {
    case 'fixed':
      return () => latency.ms;
    case 'uniform':
      return () => latency.minMs + (latency.maxMs - latency.minMs) * random();
    case 'lognormal': {
      const middle = Math.log(latency.p50Ms);
      const spread = (Math.log(latency.p99Ms) - middle) / NORMAL_P99;
      return () => {
        const radius = Math.sqrt(-2 * Math.log(1 - random()));
        return Math.exp(middle + spread * radius * Math.cos(2 * Math.PI * random()));
      };
    }
    default:
      return latency satisfies never;
  }
}
