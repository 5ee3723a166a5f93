import fc from 'fast-check';
import { PartitionQueue } from './partition-queue';
import type { OutRecord } from './port';

const call = (name: string, count: number, bytes = 10): OutRecord[] =>
  Array.from({ length: count }, (_, at) => ({ key: Buffer.from(`${name}${at}`), value: Buffer.alloc(bytes) }));

it('keeps the order, the limits, and fulfils each call with its last record', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ count: fc.integer({ min: 1, max: 1_200 }), bytes: fc.constantFrom(10, 5_000) }), {
        minLength: 1,
        maxLength: 8,
      }),
      async (calls) => {
        const queue = new PartitionQueue();
        const given = calls.map(({ count, bytes }, at) => call(`${at}-`, count, bytes));
        const fulfilled: number[] = [];
        given.forEach((records, at) => void queue.add(records).then(() => fulfilled.push(at)));
        const all = given.flat();
        const sent: OutRecord[] = [];
        while (!queue.empty) {
          const batch = queue.take();
          expect(batch.records.length).toBeGreaterThan(0);
          expect(batch.records.length).toBeLessThanOrEqual(250);
          expect(batch.records.reduce((sum, { value }) => sum + value.length, 0)).toBeLessThan(1_000_000);
          sent.push(...batch.records);
          batch.acknowledge();
          await Promise.resolve();
          const whole = given.filter((_, at) => given.slice(0, at + 1).flat().length <= sent.length).length;
          await Promise.resolve();
          expect(fulfilled).toHaveLength(whole);
        }
        expect(sent.every((record, at) => record === all[at])).toBe(true);
        expect(sent).toHaveLength(all.length);
      },
    ),
    { numRuns: 30 },
  );
});

it('rejects all calls of a failed batch, drops the rest of a call that was cut, and goes on with the next', async () => {
  const queue = new PartitionQueue();
  const outcomes: string[] = [];
  const add = (name: string, count: number) =>
    void queue.add(call(name, count)).then(
      () => outcomes.push(`${name} sent`),
      () => outcomes.push(`${name} failed`),
    );
  add('a', 10);
  add('b', 800);
  add('c', 5);
  queue.take().fail(new Error('gone'));
  const next = queue.take();
  expect(next.records.map(({ key }) => key.toString())).toEqual(['c0', 'c1', 'c2', 'c3', 'c4']);
  next.acknowledge();
  await new Promise(setImmediate);
  expect(outcomes).toEqual(['a failed', 'b failed', 'c sent']);
});

it('has nothing to do for a call without records', async () => {
  const queue = new PartitionQueue();
  await queue.add([]);
  expect(queue.empty).toBe(true);
});
