import type { Queryable } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { addsNothing, mergeFacts, nothingKnown, type MessageFacts } from '../status/message-facts';
import { statusOf, type StatusOfMessage } from '../status/message-status';

const LOCK = sqlFile(__dirname, 'lock-messages.sql');
const LOCK_UNTOLD = sqlFile(__dirname, 'lock-untold-messages.sql');
const INSERT = sqlFile(__dirname, 'insert-messages.sql');
const UPDATE = sqlFile(__dirname, 'update-messages.sql');
const MARK_TOLD = sqlFile(__dirname, 'mark-told.sql');

/** What a batch adds to one message. */
export interface Addition {
  occurrenceId: Buffer;
  /** Of the run, as UUID texts; null while only evidence came. */
  owner: { scheduleId: string; tenantId: string } | null;
  facts: MessageFacts;
}

/** A message before and after the batch, under its row lock. */
export interface Change {
  id: string;
  occurrenceId: Buffer;
  owner: Addition['owner'];
  exists: boolean;
  before: { facts: MessageFacts; status: StatusOfMessage } | null;
  after: { facts: MessageFacts; status: StatusOfMessage };
  toldStatus: string | null;
}

export interface MessageRow {
  occurrence_id: Buffer;
  facts: Partial<MessageFacts>;
  told_status: string | null;
}

interface KnownMessage {
  facts: MessageFacts;
  toldStatus: string | null;
}

/** By the hexadecimal id. */
export type KnownMessages = ReadonlyMap<string, KnownMessage>;

export async function lockMessages(transaction: Queryable, ids: Buffer[]): Promise<KnownMessages> {
  const rows = await transaction.rows<MessageRow>(LOCK, [Buffer.concat(ids)]);
  return new Map(rows.map((row) => [row.occurrence_id.toString('hex'), known(row)]));
}

/** Messages of a run that nobody was told of yet, as changes that change nothing. */
export async function lockUntoldMessages(transaction: Queryable, runId: Buffer): Promise<Change[]> {
  return messageRowsToChanges(await transaction.rows<MessageRow>(LOCK_UNTOLD, [runId, endOfRun(runId)]));
}

export function messageRowsToChanges(rows: MessageRow[]): Change[] {
  return rows.map((row) => {
    const { facts, toldStatus } = known(row);
    const state = { facts, status: statusOf(facts) };
    const id = row.occurrence_id.toString('hex');
    return { id, occurrenceId: row.occurrence_id, owner: null, exists: true, before: state, after: state, toldStatus };
  });
}

/** What a row leaves out is nothing; what else it has was computed from the facts, for the view. */
function known({ facts, told_status }: MessageRow): KnownMessage {
  return {
    facts: {
      own: facts.own ?? null,
      attempts: facts.attempts ?? 0,
      submitted: facts.submitted ?? null,
      uncertain: facts.uncertain ?? null,
      provider: facts.provider ?? null,
      sentAt: facts.sentAt ?? null,
      deliveredAt: facts.deliveredAt ?? null,
      readAt: facts.readAt ?? null,
      sentHeardAt: facts.sentHeardAt ?? null,
      deliveredHeardAt: facts.deliveredHeardAt ?? null,
      readHeardAt: facts.readHeardAt ?? null,
      passedOn: facts.passedOn ?? [],
      failures: facts.failures ?? [],
    },
    toldStatus: told_status,
  };
}

/** Null if the row says all that already: then nothing is written, counted or told. */
export function changeOf(id: string, addition: Addition, row: KnownMessage | undefined): Change | null {
  const facts = mergeFacts(row?.facts ?? nothingKnown, addition.facts);
  if (row && addsNothing(row.facts, facts)) return null;
  return {
    id,
    occurrenceId: addition.occurrenceId,
    owner: addition.owner,
    exists: row !== undefined,
    before: row ? { facts: row.facts, status: statusOf(row.facts) } : null,
    after: { facts, status: statusOf(facts) },
    toldStatus: row?.toldStatus ?? null,
  };
}

/** Answers the ids of those that another transaction inserted meanwhile: nothing was written for them. */
export async function insertMessages(transaction: Queryable, changes: Change[], nowMs: number): Promise<Set<string>> {
  if (changes.length === 0) return new Set();
  const rows = await transaction.rows<{ occurrence_id: Buffer }>(INSERT, columnsOf(changes, nowMs));
  const inserted = new Set(rows.map((row) => row.occurrence_id.toString('hex')));
  return new Set(changes.filter(({ id }) => !inserted.has(id)).map(({ id }) => id));
}

export async function updateMessages(transaction: Queryable, changes: Change[], nowMs: number): Promise<void> {
  if (changes.length > 0) await transaction.rows(UPDATE, columnsOf(changes, nowMs));
}

export async function markTold(transaction: Queryable, changes: Change[]): Promise<void> {
  if (changes.length > 0) await transaction.rows(MARK_TOLD, [Buffer.concat(changes.map(({ occurrenceId }) => occurrenceId))]);
}

function columnsOf(changes: Change[], nowMs: number): unknown[] {
  return [Buffer.concat(changes.map(({ occurrenceId }) => occurrenceId)), changes.map(lineOf).join('\n'), nowMs];
}

function lineOf({ after: { facts, status }, toldStatus }: Change): string {
  return `${facts.own?.position ?? ''}\t${status.status}\t${status.reason ?? ''}\t${toldStatus ?? ''}\t${written(facts, status)}`;
}

/** What is nothing is left out, since most facts of most messages are nothing. */
function written(facts: MessageFacts, status: StatusOfMessage): string {
  const { error, failedAt, correction, sequence } = status;
  return JSON.stringify({
    own: facts.own ?? undefined,
    attempts: facts.attempts || undefined,
    submitted: facts.submitted ?? undefined,
    uncertain: facts.uncertain ?? undefined,
    provider: facts.provider ?? undefined,
    sentAt: facts.sentAt ?? undefined,
    deliveredAt: facts.deliveredAt ?? undefined,
    readAt: facts.readAt ?? undefined,
    sentHeardAt: facts.sentHeardAt ?? undefined,
    deliveredHeardAt: facts.deliveredHeardAt ?? undefined,
    readHeardAt: facts.readHeardAt ?? undefined,
    // Only where they are not the provider's, which is next to never.
    shownSentAt: (status.sentAt !== facts.sentAt && status.sentAt) || undefined,
    shownDeliveredAt: (status.deliveredAt !== facts.deliveredAt && status.deliveredAt) || undefined,
    shownReadAt: (status.readAt !== facts.readAt && status.readAt) || undefined,
    passedOn: facts.passedOn.length > 0 ? facts.passedOn : undefined,
    failures: facts.failures.length > 0 ? facts.failures : undefined,
    error: error ?? undefined,
    failedAt: failedAt ?? undefined,
    correction: correction || undefined,
    sequence,
  });
}

/** The first id after those of the run. */
export function endOfRun(runId: Buffer): Buffer {
  return Buffer.concat([runId, Buffer.alloc(9, 0xff)]);
}
