import type { Worker } from 'node:worker_threads';
import { BlockReaders } from './block-readers';
import { readHeader, type Layout } from './read-header';
import { germanMobile } from '../test-uploads';

const idKey = Buffer.alloc(32, 5);
const rules = { distinctBy: 'number' } as const;

function layoutOf(header: string): Layout {
  const read = readHeader(header);
  if (!read.ok) throw new Error(read.detail);
  return read.layout;
}

/** The threads themselves: what ends them in life is out of a test's reach. */
const threadsOf = (readers: BlockReaders): Set<Worker> => (readers as unknown as { all: Set<Worker> }).all;

describe('threads that read blocks', () => {
  let readers: BlockReaders;
  const layout = layoutOf('phone\n');
  const block = (from: number): Buffer =>
    Buffer.from(Array.from({ length: 2_000 }, (_, index) => `${germanMobile(from + index)}\n`).join(''));

  beforeEach(() => {
    readers = new BlockReaders(2, idKey);
  });
  afterEach(() => readers.close());

  it('read every block although some of them die in the middle', async () => {
    const reading = Array.from({ length: 40 }, (_, index) => readers.read(block(index * 2_000), layout, rules));
    for (const at of [3, 11, 24]) {
      await reading[at];
      await [...threadsOf(readers)][0]!.terminate();
    }
    const blocks = await Promise.all(reading);
    expect(blocks.map(({ accepted }) => accepted)).toEqual(Array(40).fill(2_000));
    expect(new Set(blocks.map(({ hashes }) => Buffer.from(hashes).toString('hex').slice(0, 16))).size).toBe(40);
  });

  it('give a block up that ends every thread, and go on with the others', async () => {
    const single = new BlockReaders(1, idKey);
    const fatal = single.read(block(0), layout, rules);
    const refused = expect(fatal).rejects.toMatchObject({ code: 'block_unreadable', retriable: true });
    const other = single.read(block(2_000), layout, rules);
    // The first thread, and then the one that took its place and its block.
    for (let death = 0; death < 2; death++) await [...threadsOf(single)][0]!.terminate();
    await refused;
    await expect(other).resolves.toMatchObject({ accepted: 2_000 });
    await expect(single.read(block(4_000), layout, rules)).resolves.toMatchObject({ accepted: 2_000 });
    await single.close();
  });

  it('end with the service: what waits is told to come again', async () => {
    const reading = Array.from({ length: 10 }, () => readers.read(block(0), layout, rules).catch((error: unknown) => error));
    await readers.close();
    for (const answer of await Promise.all(reading)) expect(answer).toMatchObject({ retriable: true });
    await expect(readers.read(block(0), layout, rules)).rejects.toMatchObject({ code: 'shutting_down' });
  });
});
