import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import type { AudienceStore } from './audience-store';
import type { FilledChunk, SealedChunk } from '../chunks/chunk-builder';

const deflate = promisify(deflateRaw);
/** 12,000 recipients: the commit is a small part of such a statement, and 300 kB are soon written. */
const CHUNKS_A_STATEMENT = 24;

/**
 * Deflates chunks in the thread pool and stores them in order, a statement at a time, while the next ones are filled. `add` waits
 * when two statements' worth of chunks have come together: so a slow database slows the upload down and fills no memory.
 */
export class StoreChunks {
  /** The body of the first chunk. */
  first: Buffer | undefined;
  private waiting: Array<Promise<SealedChunk>> = [];
  private storing: Promise<void> = Promise.resolve();

  constructor(
    private readonly id: string,
    private readonly store: AudienceStore,
  ) {}

  async add(filled: FilledChunk): Promise<void> {
    const sealing = seal(filled);
    sealing.catch(() => undefined); // Awaited with its statement; until then it must not count as unhandled.
    this.waiting.push(sealing);
    if (this.waiting.length >= CHUNKS_A_STATEMENT) await this.storeNext();
  }

  async finish(): Promise<void> {
    if (this.waiting.length > 0) await this.storeNext();
    await this.storing;
  }

  async settled(): Promise<void> {
    await Promise.allSettled([...this.waiting, this.storing]);
  }

  private async storeNext(): Promise<void> {
    const next = this.waiting;
    this.waiting = [];
    await this.storing;
    this.storing = this.storeAll(next);
    this.storing.catch(() => undefined);
  }

  private async storeAll(next: Array<Promise<SealedChunk>>): Promise<void> {
    const chunks = await Promise.all(next);
    this.first ??= chunks[0]!.body;
    if (!(await this.store.addChunks(this.id, chunks))) throw new Error('the upload was discarded as abandoned while it went on');
  }
}

async function seal({ json, ...rest }: FilledChunk): Promise<SealedChunk> {
  return { ...rest, body: await deflate(json, { level: 1 }) };
}
