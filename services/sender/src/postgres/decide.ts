import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { MAX_BATCH, type Claimed, type DecideOptions, type DueItem, type SendPolicy, type Verdict } from './gate-port';
import { inBatches } from './in-batches';

const DECIDE = sqlFile(__dirname, 'decide.sql');
const PARK_ITEMS = sqlFile(__dirname, 'park-items.sql');

interface DecisionRow {
  /** Numbers of the items, from 1, that got a first claim. */
  claimed: number[];
  duplicates: number[];
  deadline_at: number;
  policies: Record<string, SendPolicy> | null;
  others: OtherDecision[];
}

type OtherDecision = { ord: number } & (
  | { kind: 'claimed'; attempt: number; step: number; revision: number; retriesUsed: number }
  /** Nothing stands in its way, but the caller asked for ends only. */
  | { kind: 'left' }
  | Exclude<Verdict, Claimed>
);

/** `mayClaim` false: items that could be sent are left as they are, without a verdict. */
export async function decide(
  database: Database,
  items: readonly DueItem[],
  options: DecideOptions & { mayClaim?: boolean },
): Promise<Array<Verdict | null>> {
  return inBatches(items, MAX_BATCH, (batch) => decideBatch(database, batch, options));
}

async function decideBatch(
  database: Database,
  items: readonly DueItem[],
  { instance, deadlineMs, mayClaim = true }: DecideOptions & { mayClaim?: boolean },
): Promise<Array<Verdict | null>> {
  const [row] = await database.rows<DecisionRow>(DECIDE, [
    items.map((item) => item.occurrenceId),
    items.map((item) => item.scheduleId),
    items.map((item) => item.revision),
    items.map((item) => item.numberId),
    items.map((item) => item.dueAt),
    items.map((item) => item.validUntil),
    items.map((item) => item.priority),
    items.map((item) => item.position),
    items.map((item) => item.recipientHash ?? null),
    items.map((item) => item.templateKey ?? null),
    instance,
    deadlineMs,
    mayClaim,
  ]);
  const { claimed, duplicates, deadline_at: deadlineAt, policies, others } = row!;
  const verdicts = new Array<Verdict | null>(items.length).fill(null);
  for (const ord of claimed) {
    const item = items[ord - 1]!;
    verdicts[ord - 1] = {
      kind: 'claimed',
      attempt: 1,
      step: 1,
      revision: item.revision,
      retriesUsed: 0,
      deadlineAt,
      ...policies![item.scheduleId]!,
    };
  }
  for (const ord of duplicates) verdicts[ord - 1] = { kind: 'silent', why: 'duplicate' };
  const toPark: DueItem[] = [];
  for (const { ord, ...other } of others) {
    const item = items[ord - 1]!;
    if (other.kind === 'left') continue;
    if (other.kind === 'parked') toPark.push(item);
    verdicts[ord - 1] = other.kind === 'claimed' ? { ...other, deadlineAt, ...policies![item.scheduleId]! } : other;
  }
  // Before the verdict is given: a record that counts as handled must be somewhere.
  if (toPark.length > 0) await parkItems(database, toPark);
  return verdicts;
}

async function parkItems(database: Database, items: DueItem[]): Promise<void> {
  await database.rows(PARK_ITEMS, [
    items.map((item) => item.occurrenceId),
    items.map((item) => item.record?.value ?? Buffer.alloc(0)),
    items.map((item) => item.scheduleId),
    items.map((item) => item.numberId),
    items.map((item) => item.revision),
    items.map((item) => item.position),
    items.map((item) => item.priority),
    items.map((item) => item.dueAt),
    items.map((item) => item.validUntil),
    'schedule_unknown',
  ]);
}
