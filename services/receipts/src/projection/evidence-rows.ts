import { hash } from 'node:crypto';
import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { Evidence, NamelessEvidence } from './items';

const INSERT_EVIDENCE = sqlFile(__dirname, 'insert-evidence.sql');
const KEEP_FIRST_HEARD = sqlFile(__dirname, 'keep-first-heard.sql');
const PARK_OR_FIND = sqlFile(__dirname, 'park-or-find.sql');
const STORE_IDS = sqlFile(__dirname, 'store-provider-ids.sql');
const CLEAR_PARKED = sqlFile(__dirname, 'clear-parked.sql');

/** Keeps what was not known yet, and answers that. */
export async function recordEvidence(transaction: Queryable, evidence: Evidence[]): Promise<Evidence[]> {
  // One statement can't see its own rows: what came twice in the batch must not be answered twice.
  const byKey = new Map<string, Evidence>();
  for (const one of evidence) {
    const key = evidenceKey(one);
    const known = byKey.get(key);
    if (!known || one.recordedAt < known.recordedAt) byKey.set(key, one);
  }
  if (byKey.size === 0) return [];
  const distinct = [...byKey.values()];
  const fresh = await transaction.rows<{ place: number }>(INSERT_EVIDENCE, [
    Buffer.concat(distinct.map(({ occurrenceId }) => occurrenceId)),
    distinct.map(lineOf).join('\n'),
  ]);
  if (fresh.length < distinct.length) await keepFirstHeard(transaction, distinct, new Set(fresh.map(({ place }) => place)));
  return fresh.map(({ place }) => distinct[place - 1]!);
}

/** Partitions are read side by side, so what was heard first may be read last; and a rebuild sees only what is kept. */
async function keepFirstHeard(transaction: Queryable, distinct: Evidence[], fresh: ReadonlySet<number>): Promise<void> {
  const again = distinct.filter((_, index) => !fresh.has(index + 1));
  await transaction.rows(KEEP_FIRST_HEARD, [
    again.map(({ occurrenceId }) => occurrenceId),
    again.map(({ attempt }) => attempt),
    again.map(({ kind }) => kind),
    again.map(({ providerAt }) => providerAt),
    again.map(({ providerCode }) => providerCode ?? ''),
    again.map(({ recordedAt }) => recordedAt),
  ]);
}

function lineOf(one: Evidence): string {
  const { attempt, kind, providerAt, providerCode, code, providerMessageId, recordedAt, text } = one;
  // What a provider says was cleaned of tabs and line ends when its webhook was read.
  return `${attempt}\t${kind}\t${providerAt}\t${providerCode ?? ''}\t${code ?? ''}\t${providerMessageId ?? ''}\t${recordedAt}\t${text ?? ''}`;
}

function evidenceKey({ occurrenceId, attempt, kind, providerAt, providerCode }: Evidence): string {
  return `${occurrenceId.toString('latin1')}${attempt}/${kind}/${providerAt}/${providerCode ?? ''}`;
}

/** A provider's id of a message holds the recipient's number (it is no secret in Meta's ids), so tables are keyed by its hash. */
export function providerKey(providerMessageId: string): Buffer {
  return hash('sha256', providerMessageId, 'buffer').subarray(0, 16);
}

/** Answers the evidence whose message is known; the rest is parked under the provider's id until it is. */
export async function parkOrFind(transaction: Queryable, nameless: NamelessEvidence[], nowMs: number): Promise<Evidence[]> {
  if (nameless.length === 0) return [];
  const byKey = new Map<string, { key: Buffer; evidence: NamelessEvidence[] }>();
  for (const one of nameless) {
    const key = providerKey(one.providerMessageId);
    const name = key.toString('hex');
    const known = byKey.get(name);
    if (known) known.evidence.push(one);
    else byKey.set(name, { key, evidence: [one] });
  }
  const groups = [...byKey.values()];
  const rows = await transaction.rows<{ key: Buffer; occurrence_id: Buffer | null; attempt: number }>(PARK_OR_FIND, [
    groups.map(({ key }) => key),
    groups.map(({ evidence }) => JSON.stringify(evidence)).join('\n'),
    nowMs,
  ]);
  return rows.flatMap(({ key, occurrence_id: occurrenceId, attempt }) =>
    occurrenceId === null ? [] : byKey.get(key.toString('hex'))!.evidence.map((one) => ({ ...one, occurrenceId, attempt })),
  );
}

export interface ProviderId {
  providerMessageId: string;
  occurrenceId: Buffer;
  attempt: number;
}

/** Stores whose message a provider's id is, and answers the evidence that was parked under it. */
export async function storeProviderIds(transaction: Queryable, ids: ProviderId[]): Promise<Evidence[]> {
  const distinct = [...new Map(ids.map((one) => [one.providerMessageId, one])).values()];
  if (distinct.length === 0) return [];
  const rows = await transaction.rows<{ key: Buffer; occurrence_id: Buffer; attempt: number; parked: NamelessEvidence[] | null }>(
    STORE_IDS,
    [
      Buffer.concat(distinct.map((one) => providerKey(one.providerMessageId))),
      Buffer.concat(distinct.map((one) => one.occurrenceId)),
      distinct.map((one) => one.attempt),
    ],
  );
  const parked = rows.filter((row) => row.parked !== null);
  if (parked.length > 0) await transaction.rows(CLEAR_PARKED, [parked.map(({ key }) => key)]);
  return parked.flatMap(({ occurrence_id: occurrenceId, attempt, parked: evidence }) =>
    evidence!.map((one) => ({ ...one, occurrenceId, attempt })),
  );
}
