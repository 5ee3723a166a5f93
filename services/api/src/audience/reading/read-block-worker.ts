import { parentPort, workerData } from 'node:worker_threads';
import { BlockReader } from './read-block';
import type { Layout } from './read-header';
import type { ReadingRules } from './read-recipient';

/** A thread that reads blocks, one at a time: validating a million recipients takes seconds and must not hold up the event loop. */
export interface BlockTask {
  task: number;
  text: Uint8Array;
  layout: Layout;
  rules: Omit<ReadingRules, 'idKey'>;
}

const reader = new BlockReader((workerData as { idKey: Uint8Array }).idKey);

parentPort!.on('message', ({ task, text, layout, rules }: BlockTask) => {
  try {
    const block = reader.read(text, layout, rules);
    const { recordOf, hashes, digests, rows, rowEnds, missing } = block;
    const buffers = [recordOf, hashes, digests, rows, rowEnds, ...(missing ? [missing] : [])].map(
      (array) => array.buffer as ArrayBuffer,
    );
    parentPort!.postMessage({ task, block }, buffers);
  } catch (error) {
    parentPort!.postMessage({ task, error: (error as Error).message });
  }
});
