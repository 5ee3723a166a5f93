import { latencySampler, type Latency } from './latency';
import { seededRandom } from './random';

function quantiles(latency: Latency): { p50: number; p99: number; min: number; max: number } {
  const sampler = latencySampler(latency, seededRandom(7));
  const drawn = Array.from({ length: 40_000 }, sampler).sort((a, b) => a - b);
  return { p50: drawn[20_000]!, p99: drawn[39_600]!, min: drawn[0]!, max: drawn[39_999]! };
}

describe('latencySampler', () => {
  it('draws a lognormal with the median and the 99th percentile asked for', () => {
    const { p50, p99, min } = quantiles({ kind: 'lognormal', p50Ms: 20, p99Ms: 200 });
    expect(p50).toBeGreaterThan(19);
    expect(p50).toBeLessThan(21);
    expect(p99).toBeGreaterThan(180);
    expect(p99).toBeLessThan(220);
    expect(min).toBeGreaterThan(0);
  });

  it('keeps a uniform within its bounds and spreads it', () => {
    const { p50, min, max } = quantiles({ kind: 'uniform', minMs: 10, maxMs: 30 });
    expect(min).toBeGreaterThanOrEqual(10);
    expect(max).toBeLessThan(30);
    expect(p50).toBeGreaterThan(19);
    expect(p50).toBeLessThan(21);
  });

  it('is the same sequence for the same seed and another for another', () => {
    const draw = (seed: number): number[] =>
      Array.from({ length: 5 }, latencySampler({ kind: 'uniform', minMs: 0, maxMs: 1 }, seededRandom(seed)));
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
  });
});
