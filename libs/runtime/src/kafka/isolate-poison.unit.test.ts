import fc from 'fast-check';
import { PunctualError } from '../errors';
import { handleIsolating } from './isolate-poison';
import type { InRecord } from './port';

function records(count: number): InRecord[] {
  return Array.from({ length: count }, (_, at) => ({
    offset: BigInt(at),
    key: null,
    value: Buffer.alloc(0),
    headers: {},
    timestampMs: 0,
  }));
}

interface World {
  handled: Set<bigint>;
  parked: Map<bigint, string>;
  calls: number;
}

async function run(
  count: number,
  poison: ReadonlySet<bigint>,
  options: { outagesAt?: ReadonlySet<number>; stopAtCall?: number } = {},
) {
  const world: World = { handled: new Set(), parked: new Map(), calls: 0 };
  const stop = new AbortController();
  const done = await handleIsolating(records(count), {
    signal: stop.signal,
    handle: async (part) => {
      world.calls++;
      if (world.calls === options.stopAtCall) stop.abort();
      if (stop.signal.aborted) throw new Error('told to stop');
      if (options.outagesAt?.has(world.calls))
        throw new Error('failed', { cause: new PunctualError('database_unavailable', 'away', { retriable: true }) });
      for (const { offset } of part) if (poison.has(offset)) throw new Error(`bad ${offset}`);
      for (const { offset } of part) world.handled.add(offset);
    },
    park: async ({ offset }, failure) => {
      world.parked.set(offset, (failure as Error).message);
      return true;
    },
    backOff: async () => undefined,
    onRetry: () => undefined,
  });
  return { done, ...world };
}

const someOf = (count: number) => fc.uniqueArray(fc.bigInt({ min: 0n, max: BigInt(count - 1) }), { maxLength: 5 });

it('parks exactly the poison and handles exactly the rest, outages or not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }).chain((count) => fc.tuple(fc.constant(count), someOf(count))),
      fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }),
      async ([count, bad], outages) => {
        const { done, handled, parked } = await run(count, new Set(bad), { outagesAt: new Set(outages) });
        expect(done).toBe(true);
        expect([...parked.keys()].sort()).toEqual([...bad].sort());
        expect(handled.size).toBe(count - bad.length);
        for (const offset of bad) expect(parked.get(offset)).toBe(`bad ${offset}`);
      },
    ),
  );
});

it('finds one bad record among 500 in few calls', async () => {
  const { calls, parked } = await run(500, new Set([377n]));
  expect([...parked.keys()]).toEqual([377n]);
  expect(calls).toBeLessThan(3 + 2 * 10 + 2);
});

it('does not report a batch as done that it was told to leave', async () => {
  const reference = await run(64, new Set([5n]));
  for (let stopAtCall = 1; stopAtCall <= reference.calls + 1; stopAtCall++) {
    const { done, handled, parked } = await run(64, new Set([5n]), { stopAtCall });
    expect(done).toBe(stopAtCall > reference.calls);
    if (!done) expect(handled.size + parked.size).toBeLessThan(64);
  }
});
