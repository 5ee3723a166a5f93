import { randomBytes, randomUUID } from 'node:crypto';
import { Codec } from '#contracts/codec';
import type { AnyEvent } from '#contracts/events';
import { bucketOf, occurrenceId, runId, uuidBytes } from '#contracts/ids';
import type { ClaimState } from '#contracts/words';
import type { Database } from '#runtime/postgres/database';
import { openDatabase } from '#runtime/postgres/open-database';
import { statement } from '#runtime/postgres/sql-file';
import { createTestDatabase, type DatabaseRole } from '../../../../../test-support/isolation';
import { draftEncoder } from '../encode-draft';
import { PostgresGate } from '../gate';
import type { AttemptResult, DecideOptions, DueItem, EvidenceItem, ResultOptions, Verdict } from '../gate-port';

export const OPTIONS: DecideOptions = { instance: 'sender-1', deadlineMs: 10_000 };
export const RESULTS: ResultOptions = { evidenceWindowMs: 900_000, resendAfterMs: 60_000 };

export interface TestSchedule {
  scheduleId: string;
  tenantId: string;
  numberId: string;
  runId: Buffer;
}

export interface ClaimRow {
  state: ClaimState;
  attempt: number;
  step: number;
  revision: number;
  retries_used: number;
  reason: string | null;
  error_code: string | null;
  provider_message_id: string | null;
  deadline: Date | null;
  sweep_at: Date | null;
  next_attempt_at: Date | null;
}

export interface WaitingRow {
  reason: string;
  attempt: number;
  since: Date;
  wake_at: Date;
  gives_up_at: Date;
}

const CHANGE_GATE = statement('change_gate', 'SELECT sender.change_gate($1, $2, $3, $4)');
const CLAIM = statement('claim', 'SELECT * FROM sender.claim WHERE occurrence_id = $1');
const WAITING = statement('waiting', 'SELECT * FROM sender.waiting WHERE occurrence_id = $1');
const OUTBOX = statement('outbox', 'SELECT draft FROM sender.outbox WHERE id > $1 ORDER BY id');
const LAST_OUTBOX = statement('last_outbox', 'SELECT coalesce(max(id), 0) AS id FROM sender.outbox');
const FORWARD = statement(
  'forward',
  `WITH claims AS (
     UPDATE sender.claim SET deadline = deadline - $2::int * interval '1 ms', sweep_at = sweep_at - $2::int * interval '1 ms',
       next_attempt_at = next_attempt_at - $2::int * interval '1 ms', held_since = held_since - $2::int * interval '1 ms',
       due_at = due_at - $2::int * interval '1 ms', valid_until = valid_until - $2::int * interval '1 ms'
     WHERE occurrence_id = $1)
   UPDATE sender.waiting SET wake_at = wake_at - $2::int * interval '1 ms', gives_up_at = gives_up_at - $2::int * interval '1 ms',
     since = since - $2::int * interval '1 ms', due_at = due_at - $2::int * interval '1 ms',
     valid_until = valid_until - $2::int * interval '1 ms'
   WHERE occurrence_id = $1`,
);

/** The gate on a database of its own, with the api's and the scheduler's side of it. */
export class GateUnderTest {
  readonly gate: PostgresGate;
  private readonly encode = draftEncoder(new Codec());
  private readonly codec = new Codec();

  private constructor(
    readonly admin: Database,
    readonly sender: Database,
    readonly api: Database,
    readonly scheduler: Database,
    readonly urlFor: (role: DatabaseRole) => string,
    private readonly dropDatabase: () => Promise<void>,
  ) {
    this.gate = new PostgresGate(sender);
  }

  static async open(): Promise<GateUnderTest> {
    const database = await createTestDatabase();
    const open = (url: string) => openDatabase({ url, name: 'gate-test', max: 8 });
    return new GateUnderTest(
      await open(database.adminUrl),
      await open(database.urlFor('punctual_sender')),
      await open(database.urlFor('punctual_api')),
      await open(database.urlFor('punctual_scheduler')),
      (role) => database.urlFor(role),
      () => database.drop(),
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.admin, this.sender, this.api, this.scheduler].map((database) => database.close()));
    await this.dropDatabase();
  }

  async openSchedule(details: Record<string, unknown> = {}): Promise<TestSchedule> {
    const scheduleId = randomUUID();
    const schedule = {
      scheduleId,
      tenantId: randomUUID(),
      numberId: randomUUID(),
      runId: runId(bucketOf(Date.now()), uuidBytes(scheduleId), 'once'),
      ...details,
    };
    await this.changeGate(schedule, 'open', 1, gateDetails(schedule, { ...details, runId: schedule.runId.toString('hex') }));
    return schedule;
  }

  async changeGate(schedule: TestSchedule, action: string, revision = 1, details: Record<string, unknown> = {}): Promise<void> {
    await this.api.rows(CHANGE_GATE, [schedule.scheduleId, action, revision, JSON.stringify(details)]);
  }

  revise(schedule: TestSchedule, revision: number, details: Record<string, unknown> = {}): Promise<void> {
    return this.changeGate(schedule, 'revise', revision, {
      ...gateDetails(schedule, details),
      audienceChanged: false,
      ...details,
    });
  }

  /** One item, decided. */
  async decideOne(item: DueItem, options: DecideOptions = OPTIONS): Promise<Verdict> {
    return (await this.gate.decide([item], options))[0]!;
  }

  /** Claimed, with its first attempt under way. */
  async claimed(schedule: TestSchedule, overrides: Partial<DueItem> = {}): Promise<DueItem> {
    const item = dueItem(schedule, overrides);
    const verdict = await this.decideOne(item);
    if (verdict.kind !== 'claimed') throw new Error(`expected a claim, not ${JSON.stringify(verdict)}`);
    return item;
  }

  async record(result: AttemptResult, options: ResultOptions = RESULTS) {
    return (await this.gate.recordResults([result], options))[0]!;
  }

  async claim(item: { occurrenceId: Buffer }): Promise<ClaimRow | undefined> {
    return (await this.admin.rows<ClaimRow & { [column: string]: unknown }>(CLAIM, [item.occurrenceId]))[0];
  }

  async waiting(item: { occurrenceId: Buffer }): Promise<WaitingRow | undefined> {
    return (await this.admin.rows<WaitingRow & { [column: string]: unknown }>(WAITING, [item.occurrenceId]))[0];
  }

  /** Lets time pass for one message: everything that is stored about its future comes nearer. */
  async passTime(item: { occurrenceId: Buffer }, milliseconds: number): Promise<void> {
    await this.admin.rows(FORWARD, [item.occurrenceId, milliseconds]);
  }

  /** Replaces a piece of a function of the schema in this database. */
  async changeFunction(name: string, from: string, to: string): Promise<void> {
    const { rows } = await this.admin.pool.query<{ definition: string }>('SELECT pg_get_functiondef($1::regproc) AS definition', [
      `sender.${name}`,
    ]);
    const { definition } = rows[0]!;
    const parts = definition.split(from);
    if (parts.length !== 2) throw new Error(`sender.${name} has ${parts.length - 1} times: ${from}`);
    await this.admin.pool.query(parts.join(to));
  }

  /** The events that `work` published, through the encoder and the codec, as a subscriber would read them. */
  async eventsOf(work: () => Promise<unknown>): Promise<AnyEvent[]> {
    const [before] = await this.admin.rows<{ id: string }>(LAST_OUTBOX);
    await work();
    const rows = await this.admin.rows<{ draft: unknown }>(OUTBOX, [before!.id]);
    return rows.map((row) => this.codec.decode(this.encode('deliveries', row.draft).value));
  }
}

function gateDetails(schedule: TestSchedule, details: Record<string, unknown>): Record<string, unknown> {
  return {
    tenantId: schedule.tenantId,
    numberId: schedule.numberId,
    mode: 'test',
    channel: 'whatsapp',
    category: 'marketing',
    onUncertain: 'leave',
    retryDelaysMs: [120_000, 240_000, 480_000],
    runId: schedule.runId.toString('hex'),
    holdGiveUpMs: 604_800_000,
    ...details,
  };
}

export function dueItem(schedule: TestSchedule, overrides: Partial<DueItem> = {}): DueItem {
  return {
    occurrenceId: occurrenceId(schedule.runId, randomBytes(8)),
    scheduleId: schedule.scheduleId,
    revision: 1,
    numberId: schedule.numberId,
    dueAt: Date.now() - 1_000,
    validUntil: null,
    priority: 5,
    position: 0,
    ...overrides,
  };
}

/** Results of attempt `attempt` of a claimed item. */
export function results(item: { occurrenceId: Buffer }, attempt = 1) {
  const base = { occurrenceId: item.occurrenceId, attempt, calledAt: Date.now() - 50, endedAt: Date.now() };
  return {
    accepted: {
      ...base,
      outcome: 'accepted',
      providerMessageId: 'wamid.TEST',
      providerStatus: 'accepted',
      waits: [{ reason: 'pace', ms: 12 }],
    },
    failed: {
      ...base,
      outcome: 'failed',
      code: 'recipient_unreachable',
      providerCode: '131026',
      text: 'no',
      reachedProvider: true,
    },
    retry: {
      ...base,
      outcome: 'retry',
      code: 'provider_unavailable',
      providerCode: '131000',
      nextAttemptAt: Date.now() + 120_000,
      usesRetry: true,
      waitReason: 'retry',
    },
    notSent: { ...base, calledAt: null, outcome: 'not_sent' },
    uncertain: { ...base, outcome: 'uncertain', reason: 'header_timeout' },
  } satisfies Record<string, AttemptResult>;
}

export function evidence(item: { occurrenceId: Buffer }, kind: EvidenceItem['kind'], attempt = 1): EvidenceItem {
  return {
    occurrenceId: item.occurrenceId,
    attempt,
    kind,
    providerAt: Math.floor(Date.now() / 1000) * 1000,
    providerMessageId: 'wamid.EVIDENCE',
    code: kind === 'failed' ? 'recipient_unreachable' : null,
    providerCode: kind === 'failed' ? '131026' : null,
    text: null,
  };
}
