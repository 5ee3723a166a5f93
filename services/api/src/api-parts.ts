import type { Codec } from '#contracts/codec';
import type { Database } from '#runtime/postgres/database';

/** What the steps work with. A class only so that it can be injected. */
export abstract class ApiParts {
  abstract readonly database: Database;
  abstract readonly codec: Codec;
  abstract readonly idKey: Buffer;
  abstract readonly credentialsKey: Buffer;
  abstract readonly schedulesTopic: string;
  abstract readonly holdGiveUpMs: number;
  /** Called after every write that left a row in the outbox. */
  abstract readonly wakeRelay: () => void;
}
