import { existsSync } from 'node:fs';
import { join, sep } from 'node:path';
import { Worker } from 'node:worker_threads';
import { PunctualError } from '#runtime/errors';
import type { ReadBlock } from './read-block';
import type { BlockTask } from './read-block-worker';
import type { Layout } from './read-header';
import type { ReadingRules } from './read-recipient';

interface Waiting {
  message: BlockTask;
  resolve: (block: ReadBlock) => void;
  reject: (error: Error) => void;
  /** Threads that ended while they had it. */
  deaths: number;
}

/** A block can be what kills its thread: it must not kill one after the other. */
const MOST_DEATHS = 2;

/** A few threads that read blocks of recipients for all uploads; a thread that dies is replaced, and its block goes to another one. */
export class BlockReaders {
  private readonly idle: Worker[] = [];
  private readonly all = new Set<Worker>();
  private readonly queue: Waiting[] = [];
  private readonly running = new Map<Worker, Waiting>();
  private nextTask = 1;
  private closed = false;

  constructor(
    readonly threads: number,
    private readonly idKey: Uint8Array,
  ) {}

  read(text: Uint8Array, layout: Layout, rules: Omit<ReadingRules, 'idKey'>): Promise<ReadBlock> {
    return new Promise((resolve, reject) => {
      if (this.closed)
        return reject(new PunctualError('shutting_down', 'The service stops; upload again in a moment.', { retriable: true }));
      const { distinctBy, digits, defaultCountry } = rules;
      this.queue.push({
        message: { task: this.nextTask++, text, layout, rules: { distinctBy, digits, defaultCountry } },
        resolve,
        reject,
        deaths: 0,
      });
      this.next();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const waiting of this.queue.splice(0))
      waiting.reject(new PunctualError('shutting_down', 'The service stops.', { retriable: true }));
    await Promise.all([...this.all].map((worker) => worker.terminate()));
  }

  private next(): void {
    while (this.queue.length > 0) {
      const worker = this.idle.pop() ?? (this.all.size < this.threads ? this.start() : undefined);
      if (worker === undefined) return;
      const waiting = this.queue.shift()!;
      this.running.set(worker, waiting);
      worker.postMessage(waiting.message);
    }
  }

  private start(): Worker {
    const worker = new Worker(workerFile(), {
      workerData: { idKey: this.idKey },
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 12 },
    });
    worker.unref();
    this.all.add(worker);
    worker.on('message', (answer: { block?: ReadBlock; error?: string }) => {
      const waiting = this.running.get(worker);
      if (!waiting) return;
      this.running.delete(worker);
      this.idle.push(worker);
      if (answer.block) waiting.resolve(answer.block);
      else waiting.reject(new PunctualError('block_unreadable', `A block of recipients could not be read: ${answer.error}`));
      this.next();
    });
    const lost = (cause: unknown): void => {
      if (!this.all.delete(worker)) return;
      const at = this.idle.indexOf(worker);
      if (at !== -1) this.idle.splice(at, 1);
      const waiting = this.running.get(worker);
      this.running.delete(worker);
      if (waiting && !this.closed && ++waiting.deaths < MOST_DEATHS) this.queue.unshift(waiting);
      else waiting?.reject(threadLost(cause));
      if (!this.closed) this.next();
    };
    worker.on('error', lost);
    worker.on('exit', lost);
    return worker;
  }
}

function threadLost(cause: unknown): PunctualError {
  const message = 'The threads that read a block of recipients ended; nothing of the upload is kept. Upload it again.';
  return new PunctualError('block_unreadable', message, { retriable: true, cause });
}

/** Threads run compiled code; from the sources the build's copy is taken. */
function workerFile(): string {
  const beside = join(__dirname, 'read-block-worker.js');
  if (existsSync(beside)) return beside;
  const compiled = beside.replace(`${sep}services${sep}api${sep}`, `${sep}dist${sep}services${sep}api${sep}`);
  if (!existsSync(compiled)) throw new Error(`${compiled} is missing: run "npm run build" first`);
  return compiled;
}
