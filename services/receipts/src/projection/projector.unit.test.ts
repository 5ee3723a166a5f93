import { PunctualError } from '#runtime/errors';
import type { ReadBatch } from './items';
import { Projector } from './projector';

const batch = (topic: string, partition: number, count = 1): ReadBatch => ({
  topic,
  partition,
  records: Array.from({ length: count }, (_, offset) => ({ offset: BigInt(offset), timestampMs: 0, item: { about: 'nothing' } })),
});
const names = (batches: ReadBatch[]) => batches.map(({ topic, partition }) => `${topic}/${partition}`);

it('projects what came while a transaction was out together, a partition once', async () => {
  const calls: string[][] = [];
  let open: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (open = resolve));
  const projector = new Projector(async (batches) => {
    calls.push(names(batches));
    if (calls.length === 1) await first;
  });
  const adds = [projector.add(batch('a', 0))];
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  adds.push(projector.add(batch('a', 1)), projector.add(batch('b', 0)), projector.add(batch('a', 1)));
  open();
  await Promise.all(adds);
  expect(calls).toEqual([['a/0'], ['a/1', 'b/0'], ['a/1']]);
});

it('keeps a transaction within its size, but takes a batch that is larger alone', async () => {
  const calls: string[][] = [];
  const projector = new Projector(async (batches) => void calls.push(names(batches)), { mostWeight: 10 });
  await Promise.all([
    projector.add(batch('a', 0, 6)),
    projector.add(batch('a', 1, 6)),
    projector.add(batch('a', 2, 4)),
    projector.add(batch('a', 3, 40)),
  ]);
  expect(calls).toEqual([['a/0', 'a/2'], ['a/1'], ['a/3']]);
});

it('blames only the batch that fails alone', async () => {
  const projector = new Projector(async (batches) => {
    if (names(batches).includes('bad/0')) throw new Error('poison');
  });
  const answers = await Promise.allSettled([
    projector.add(batch('a', 0)),
    projector.add(batch('bad', 0)),
    projector.add(batch('a', 1)),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

it('lets all wait for an outage, without trying each', async () => {
  let calls = 0;
  const projector = new Projector(async () => {
    calls++;
    throw new PunctualError('away', 'PostgreSQL is away', { retriable: true });
  });
  const answers = await Promise.allSettled([projector.add(batch('a', 0)), projector.add(batch('a', 1))]);
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(calls).toBe(1);
});
