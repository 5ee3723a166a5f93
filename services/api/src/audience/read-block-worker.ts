import { parentPort, workerData } from 'node:worker_threads';
import { readBlock } from './read-block';
import type { Layout } from './read-header';
import type { ReadingRules } from './read-recipient';

/** A thread that reads blocks, one at a time: number validation is 12 µs a row and must not hold up the event loop. */
export interface BlockTask {
  task: number;
  text: Uint8Array;
  layout: Layout;
  rules: Omit<ReadingRules, 'idKey'>;
}

const { idKey } = workerData as { idKey: Uint8Array };

parentPort!.on('message', ({ task, text, layout, rules }: BlockTask) => {
  try {
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    const block = readBlock(bytes.toString('utf8').replaceAll('\r\n', '\n'), layout, { ...rules, idKey });
    const transfer = [block.hashes, block.digests, block.rows, block.recordOf, block.rowEnds, block.missing].map(
      (array) => array.buffer as ArrayBuffer,
    );
    // Small buffers are slices of Node's shared pool, which must not be taken away from this thread.
    parentPort!.postMessage({ task, block }, [...new Set(transfer.filter((buffer) => buffer.byteLength > 65_536))]);
  } catch (error) {
    parentPort!.postMessage({ task, error: (error as Error).message });
  }
});
