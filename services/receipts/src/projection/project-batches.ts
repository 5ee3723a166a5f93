import type { Codec } from '#contracts/codec';
import { parseId, runOf, uuidText } from '#contracts/ids';
import type { Clock } from '#runtime/clock';
import type { Database, Queryable } from '#runtime/postgres/database';
import { factsOfEvidence, mergeFacts, nothingKnown, type MessageFacts } from '../status/message-facts';
import type { StatusOfMessage } from '../status/message-status';
import { parkOrFind, recordEvidence, storeProviderIds, type ProviderId } from './evidence-rows';
import type { Evidence, Item, NamelessEvidence, ReadBatch, RunEvent, ScheduleEvent } from './items';
import {
  changeOf,
  insertMessages,
  lockMessages,
  lockUntoldMessages,
  markTold,
  updateMessages,
  type Addition,
  type Change,
  type KnownMessages,
} from './message-rows';
import { ProjectorOffsets } from './offset-rows';
import { messageStatusChanged, receiptRecorded, type Outgoing, type RunFrame } from './outgoing';
import { writeOutbox, type Partitions } from './outbox-rows';
import { projectRuns } from './project-runs';
import { RecipientDirectory } from './recipient-directory';
import { RunDeltas } from './run-delta';
import { frameOf, readFrames, runsOfSchedules, type RunRow } from './run-rows';

export interface ProjectionOptions {
  database: Database;
  codec: Codec;
  clock: Clock;
  partitions: Partitions;
  /** How long after its end a run may still get evidence before its messages count as final without. */
  evidenceWindowMs: number;
}

/**
 * Writes batches of several partitions into the read model, in one transaction: evidence, messages, counters, outbox and
 * offsets. Doing it twice, or on two instances at once, adds nothing: offsets say what was done, and what is merged again
 * changes no row and so no counter.
 */
export class Projection {
  private readonly offsets = new ProjectorOffsets();
  private readonly recipients = new RecipientDirectory();

  constructor(private readonly options: ProjectionOptions) {}

  /** Each partition at most once. */
  async project(batches: ReadBatch[]): Promise<void> {
    const { database, partitions } = this.options;
    await this.offsets.know(database, batches);
    await database.transaction(async (transaction) => {
      const fresh = await this.offsets.lock(transaction, batches);
      const items = fresh.flatMap(({ records }) => records.map(({ item }) => item));
      if (items.length === 0) return;
      await writeOutbox(transaction, await this.apply(transaction, items), partitions);
      await this.offsets.move(transaction, fresh);
    });
  }

  private async apply(transaction: Queryable, items: Item[]): Promise<Outgoing[]> {
    const { codec, clock, evidenceWindowMs } = this.options;
    const nowMs = clock.nowMs();
    const sorted = sortItems(items);
    const additions = new Map<string, Addition>();
    for (const { occurrenceId, scheduleId, tenantId, facts } of sorted.deliveries) {
      const addition = additionTo(additions, occurrenceId);
      addition.owner ??= { scheduleId: uuidText(scheduleId), tenantId: uuidText(tenantId) };
      addition.facts = mergeFacts(addition.facts, facts);
    }
    const evidence = [...sorted.evidence, ...(await parkOrFind(transaction, sorted.nameless, nowMs))];
    const recorded = await recordEvidence(transaction, evidence);
    addEvidence(additions, evidence);

    const rows = await lockMessages(transaction, idsOf(additions));
    const parked = await storeProviderIds(
      transaction,
      newProviderIds(sorted.deliveries, evidence, (id) => rows.get(id)?.facts.provider?.id),
    );
    recorded.push(...(await recordEvidence(transaction, parked)));
    addEvidence(additions, parked);

    const changes = [...additions]
      .map(([id, addition]) => changeOf(id, addition, rows.get(id)))
      .filter((change) => change !== null);
    const frames = await readFrames(transaction, runIdsOf(changes));
    const written = await this.write(transaction, changes, additions, frames, nowMs);

    const deltas = new RunDeltas();
    for (const change of written) deltas.addChange(change);
    for (const told of sorted.runs) deltas.addRunEvent(told);
    await addScheduleEvents(transaction, deltas, sorted.schedules);
    const runs = await projectRuns(transaction, codec, [...deltas.byRun.values()], nowMs, evidenceWindowMs);

    const told = [
      ...written.filter((change) => isNews(change) && frames.has(runNameOf(change))),
      ...(await this.catchUp(transaction, written, frames, runs.rows, runs.newlyPlanned)),
    ];
    return [
      ...recorded.filter((one) => canSettle(one, additions, rows)).map((one) => receiptRecorded(codec, one)),
      ...(await this.tell(transaction, told, (run) => frames.get(run) ?? frameOf(runs.rows.get(run)!)!, nowMs)),
      ...runs.outgoing,
    ];
  }

  /** Answers what was written, which differs from `changes` where another transaction inserted the same message first. */
  private async write(
    transaction: Queryable,
    changes: Change[],
    additions: Map<string, Addition>,
    frames: Map<string, RunFrame>,
    nowMs: number,
  ): Promise<Change[]> {
    const marked = (list: Change[]) => list.map((change) => withTold(change, frames.has(runNameOf(change))));
    const toInsert = changes.filter(({ exists }) => !exists);
    const missed = await insertMessages(transaction, marked(toInsert), nowMs);
    const toUpdate = changes.filter(({ exists }) => exists);
    if (missed.size > 0) {
      const again = await lockMessages(
        transaction,
        [...missed].map((id) => additions.get(id)!.occurrenceId),
      );
      for (const id of missed) {
        const change = changeOf(id, additions.get(id)!, again.get(id));
        if (change) toUpdate.push(change);
      }
    }
    await updateMessages(transaction, marked(toUpdate), nowMs);
    return [...toInsert.filter(({ id }) => !missed.has(id)), ...toUpdate];
  }

  /** Messages that could not be told because the plan of their run was not known when they were written. */
  private async catchUp(
    transaction: Queryable,
    written: Change[],
    frames: Map<string, RunFrame>,
    rows: Map<string, RunRow>,
    newlyPlanned: Buffer[],
  ): Promise<Change[]> {
    const isNew = new Set(newlyPlanned.map((runId) => runId.toString('hex')));
    // Planned by a transaction that committed after we had looked: it could not see our messages, nor we its plan.
    const late = written.filter((change) => {
      const run = runNameOf(change);
      return !frames.has(run) && !isNew.has(run) && change.after.facts.own !== null && rows.get(run)?.revision != null;
    });
    const untold: Change[] = [];
    for (const runId of newlyPlanned) untold.push(...(await lockUntoldMessages(transaction, runId)));
    await markTold(transaction, [...late, ...untold]);
    return [...late, ...untold];
  }

  private async tell(
    transaction: Queryable,
    changes: Change[],
    frameOfRun: (run: string) => RunFrame,
    nowMs: number,
  ): Promise<Outgoing[]> {
    if (changes.length === 0) return [];
    const frames = changes.map((change) => frameOfRun(runNameOf(change)));
    const recipients = await this.recipients.read(
      transaction,
      changes.map(({ after }, place) => {
        const { revision, position } = after.facts.own!;
        return { scheduleId: frames[place]!.scheduleId, revision, position };
      }),
    );
    return changes.map((change, place) =>
      messageStatusChanged(this.options.codec, change, frames[place]!, recipients[place]!, nowMs),
    );
  }
}

/**
 * Whether the sender could act on it: not on a status that we don't know, and not where it has told that it holds the message for
 * accepted, which is final for the gate. That is nearly all evidence, since providers answer before they report.
 */
function canSettle({ kind, occurrenceId }: Evidence, additions: Map<string, Addition>, rows: KnownMessages): boolean {
  if (kind === 'unknown') return false;
  const id = occurrenceId.toString('hex');
  return !isSubmitted(additions.get(id)?.facts) && !isSubmitted(rows.get(id)?.facts);
}

const isSubmitted = (facts: MessageFacts | undefined): boolean => facts?.own?.kind === 'submitted';

interface SortedItems {
  deliveries: Array<Extract<Item, { about: 'message' }>['delivery']>;
  evidence: Evidence[];
  nameless: NamelessEvidence[];
  runs: RunEvent[];
  schedules: ScheduleEvent[];
}

function sortItems(items: Item[]): SortedItems {
  const sorted: SortedItems = { deliveries: [], evidence: [], nameless: [], runs: [], schedules: [] };
  for (const item of items) {
    switch (item.about) {
      case 'message':
        sorted.deliveries.push(item.delivery);
        break;
      case 'evidence':
        sorted.evidence.push(...item.evidence);
        sorted.nameless.push(...item.nameless);
        break;
      case 'run':
        sorted.runs.push(item.told);
        break;
      case 'schedule':
        sorted.schedules.push(item.told);
        break;
      case 'nothing':
        break;
      default:
        item satisfies never;
    }
  }
  return sorted;
}

function additionTo(additions: Map<string, Addition>, occurrenceId: Buffer): Addition {
  const id = occurrenceId.toString('hex');
  let addition = additions.get(id);
  if (!addition) additions.set(id, (addition = { occurrenceId, owner: null, facts: nothingKnown }));
  return addition;
}

function addEvidence(additions: Map<string, Addition>, evidence: Evidence[]): void {
  for (const one of evidence) {
    const { occurrenceId, attempt, kind, providerAt: at, recordedAt, providerMessageId, code, providerCode, text } = one;
    // Kept as evidence, but it says nothing of the message.
    if (kind === 'unknown') continue;
    const addition = additionTo(additions, occurrenceId);
    const error = code === null ? null : { code, providerCode, text };
    addition.facts = mergeFacts(addition.facts, factsOfEvidence({ attempt, kind, at, recordedAt, providerMessageId, error }));
  }
}

function idsOf(additions: Map<string, Addition>): Buffer[] {
  return [...additions.values()].map(({ occurrenceId }) => occurrenceId);
}

/** Every name that the batch gives a message and that is not stored with it already. */
function newProviderIds(
  deliveries: SortedItems['deliveries'],
  evidence: Evidence[],
  storedName: (id: string) => string | undefined,
): ProviderId[] {
  const named = [
    ...deliveries.flatMap(({ occurrenceId, facts: { provider } }) =>
      provider ? [{ occurrenceId, attempt: provider.attempt, providerMessageId: provider.id }] : [],
    ),
    ...evidence.flatMap(({ occurrenceId, attempt, kind, providerMessageId }) =>
      providerMessageId === null || kind === 'unknown' ? [] : [{ occurrenceId, attempt, providerMessageId }],
    ),
  ];
  return named.filter(({ occurrenceId, providerMessageId }) => storedName(occurrenceId.toString('hex')) !== providerMessageId);
}

async function addScheduleEvents(transaction: Queryable, deltas: RunDeltas, events: ScheduleEvent[]): Promise<void> {
  for (const told of events) {
    const scheduleId = parseId('sch', told.event.scheduleId);
    if (!scheduleId) continue;
    for (const runId of await runsOfSchedules(transaction, [uuidText(scheduleId)])) deltas.addScheduleEvent(runId, told);
  }
}

function runNameOf({ id }: Change): string {
  return id.slice(0, 24);
}

function runIdsOf(changes: Change[]): Buffer[] {
  const runs = new Map(changes.map((change) => [runNameOf(change), change.occurrenceId]));
  return [...runs.values()].map(runOf);
}

/** A change is told when a customer would see it: a status, its reason or its error; not an instant that came late. */
function isNews({ before, after, toldStatus }: Change): boolean {
  if (after.facts.own === null) return false;
  if (before === null || before.facts.own === null || toldStatus === null) return true;
  return !isSameForCustomers(before.status, after.status);
}

function isSameForCustomers(a: StatusOfMessage, b: StatusOfMessage): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.correction === b.correction &&
    a.error?.code === b.error?.code &&
    a.waiting?.since === b.waiting?.since &&
    a.waiting?.until === b.waiting?.until
  );
}

function withTold(change: Change, planned: boolean): Change {
  return planned && change.after.facts.own !== null ? { ...change, toldStatus: change.after.status.status } : change;
}
