import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { RecipientSet } from '../planning/recipient-set';
import type { Slice } from '../planning/slice';

const STATEMENTS = {
  claimed: sqlFile(__dirname, 'claimed-in-run.sql'),
  answered: sqlFile(__dirname, 'answered-in-run.sql'),
};
/** 8 MB for a run of a million. */
const MOST_SETS = 8;

type SliceOfPass = Pick<Slice, 'runId' | 'revision' | 'pass' | 'leaveOut'>;

/**
 * Who to leave out of a run that is released anew, read once for each pass: what is claimed meanwhile only costs the gate a
 * duplicate.
 */
export class RecipientSets {
  private readonly sets = new Map<string, Promise<RecipientSet>>();

  constructor(private readonly database: Database) {}

  /** Whether a slice can be produced without reading first, which may take seconds for a large run. */
  isAtHand(slice: SliceOfPass): boolean {
    return slice.leaveOut === null || this.sets.has(keyOf(slice));
  }

  async leftOutOf(slice: SliceOfPass): Promise<RecipientSet | undefined> {
    if (slice.leaveOut === null) return undefined;
    const key = keyOf(slice);
    let set = this.sets.get(key);
    if (set) this.sets.delete(key);
    else set = this.read(slice.runId, slice.leaveOut);
    this.sets.set(key, set);
    if (this.sets.size > MOST_SETS) this.sets.delete(this.sets.keys().next().value!);
    try {
      return await set;
    } catch (error) {
      this.sets.delete(key);
      throw error;
    }
  }

  async read(runId: Buffer, which: 'claimed' | 'answered'): Promise<RecipientSet> {
    const [row] = await this.database.rows<{ hashes: Buffer }>(STATEMENTS[which], [runId]);
    return new RecipientSet(row!.hashes);
  }
}

function keyOf({ runId, revision, pass }: SliceOfPass): string {
  return `${runId.toString('hex')}/${revision}/${pass}`;
}
