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

/**
 * Who to leave out of a run that is released anew, read once for each pass: what is claimed meanwhile only costs the gate a
 * duplicate.
 */
export class RecipientSets {
  private readonly sets = new Map<string, Promise<RecipientSet>>();

  constructor(private readonly database: Database) {}

  async leftOutOf(slice: Pick<Slice, 'runId' | 'revision' | 'pass' | 'leaveOut' | 'from'>): Promise<RecipientSet | undefined> {
    if (slice.leaveOut === null) return undefined;
    const key = `${slice.runId.toString('hex')}/${slice.revision}/${slice.pass}`;
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
