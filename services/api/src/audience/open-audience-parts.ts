import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import type { Queryable } from '#runtime/postgres/database';
import type { AudienceParts } from './audience-parts';
import { UploadSlots } from './upload-slots';
import { AudienceStore } from './storing/audience-store';
import { BlockReaders } from './reading/block-readers';
import { UploadSweeper } from './storing/sweep-uploads';

export interface AudienceConfig {
  UPLOAD_MAX_BYTES: number;
  UPLOAD_MAX_RECIPIENTS: number;
  UPLOADS_AT_ONCE: number;
  UPLOADS_AT_ONCE_PER_TENANT: number;
  UPLOAD_STALL_MS: number;
  UPLOAD_THREADS: number;
}

/** Threads start with the first upload. */
export function openAudienceParts(database: Queryable, config: AudienceConfig, idKey: Uint8Array, clock: Clock, log: Log) {
  const store = new AudienceStore(database);
  const readers = new BlockReaders(config.UPLOAD_THREADS, idKey);
  const sweeper = new UploadSweeper(store, log);
  const parts: AudienceParts = {
    store,
    readers,
    clock,
    limits: {
      maxBytes: config.UPLOAD_MAX_BYTES,
      maxRecipients: config.UPLOAD_MAX_RECIPIENTS,
      stallMs: config.UPLOAD_STALL_MS,
    },
    slots: new UploadSlots(config.UPLOADS_AT_ONCE, config.UPLOADS_AT_ONCE_PER_TENANT),
  };
  return {
    parts,
    sweeper,
    close: async (): Promise<void> => {
      await Promise.all([sweeper.stop(), readers.close()]);
    },
  };
}
