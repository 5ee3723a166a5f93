import { openChunk } from '#contracts/audience-chunk';
import { CHUNK_SIZE } from '#contracts/ids';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';

const READ_AUDIENCES = sqlFile(__dirname, 'read-audiences.sql');
const READ_CHUNKS = sqlFile(__dirname, 'read-chunks.sql');

export interface RecipientRef {
  scheduleId: string;
  revision: number;
  position: number;
}

/** What a status event may say of a recipient. */
export interface ShownRecipient {
  ref: string | null;
  /** Masked. */
  to: string;
}

/** Recipients by schedule, revision and position, from the sealed chunks: opened ones are kept, `mostRecipients` in all. */
export class RecipientDirectory {
  private readonly audiences = new Map<string, string>();
  private readonly chunks = new Map<string, ShownRecipient[]>();
  private kept = 0;

  constructor(private readonly mostRecipients = 100_000) {}

  /** In the order of `wanted`; null where the audience is gone. Two statements at most, however many are wanted. */
  async read(database: Queryable, wanted: RecipientRef[]): Promise<Array<ShownRecipient | null>> {
    await this.loadAudiences(database, wanted);
    const chunkOf = ({ scheduleId, revision, position }: RecipientRef) => {
      const audience = this.audiences.get(`${scheduleId}/${revision}`);
      return audience === undefined ? null : `${audience}/${Math.floor(position / CHUNK_SIZE)}`;
    };
    const names = [...new Set(wanted.map(chunkOf))].filter((name) => name !== null);
    const opened = await this.loadChunks(database, names);
    return wanted.map((one) => {
      const name = chunkOf(one);
      return name === null ? null : (opened.get(name)?.[one.position % CHUNK_SIZE] ?? null);
    });
  }

  private async loadAudiences(database: Queryable, wanted: RecipientRef[]): Promise<void> {
    const missing = new Map(
      wanted.map((one) => [`${one.scheduleId}/${one.revision}`, one] as const).filter(([name]) => !this.audiences.has(name)),
    );
    if (missing.size === 0) return;
    const contents = [...missing.values()];
    const rows = await database.rows<{ schedule_id: string; revision: number; audience_id: string }>(READ_AUDIENCES, [
      contents.map(({ scheduleId }) => scheduleId),
      contents.map(({ revision }) => revision),
    ]);
    if (this.audiences.size > 50_000) this.audiences.clear();
    for (const row of rows) this.audiences.set(`${row.schedule_id}/${row.revision}`, row.audience_id);
  }

  private async loadChunks(database: Queryable, names: string[]): Promise<Map<string, ShownRecipient[]>> {
    const opened = new Map<string, ShownRecipient[]>();
    const missing: string[] = [];
    for (const name of names) {
      const recipients = this.chunks.get(name);
      if (!recipients) missing.push(name);
      else {
        // Used last, dropped last: a Map keeps the order of insertion.
        this.chunks.delete(name);
        this.chunks.set(name, recipients);
        opened.set(name, recipients);
      }
    }
    if (missing.length === 0) return opened;
    const parts = missing.map((name) => name.split('/') as [string, string]);
    const rows = await database.rows<{ audience_id: string; chunk: number; body: Buffer }>(READ_CHUNKS, [
      parts.map(([audience]) => audience),
      parts.map(([, chunk]) => Number(chunk)),
    ]);
    for (const { audience_id: audience, chunk, body } of rows) {
      const recipients = openChunk(body).map(({ ref, to }) => ({ ref, to: maskNumber(to) }));
      opened.set(`${audience}/${chunk}`, recipients);
      this.keep(`${audience}/${chunk}`, recipients);
    }
    return opened;
  }

  private keep(name: string, recipients: ShownRecipient[]): void {
    this.chunks.set(name, recipients);
    this.kept += recipients.length;
    for (const [oldest, dropped] of this.chunks) {
      if (this.kept <= this.mostRecipients) break;
      this.chunks.delete(oldest);
      this.kept -= dropped.length;
    }
  }
}

/** Country, area and the last two digits: enough to recognise one's own customer, too little to call. */
export function maskNumber(number: string): string {
  const shown = Math.min(6, Math.max(number.length - 6, 0));
  return number.slice(0, shown) + '*'.repeat(Math.max(number.length - shown - 2, 0)) + number.slice(-2);
}
