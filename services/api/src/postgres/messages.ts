import type { ClaimState, MessageStatus } from '#contracts/words';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { MessageFacts } from '../messages/message-facts';
import type { RunFacts } from '../messages/run-view';

const READ_FACTS = sqlFile(__dirname, 'read-message-facts.sql');
const LOCATE = sqlFile(__dirname, 'locate-recipient.sql');
const READ_CHUNK = sqlFile(__dirname, 'read-chunk.sql');
const READ_RUN = sqlFile(__dirname, 'read-run.sql');
const HASH_BYTES = 8;

interface FactsRow {
  occurrence_id: Buffer;
  state: ClaimState | null;
  claim_step: number;
  claim_attempt: number;
  claim_reason: string | null;
  claim_error_code: string | null;
  next_attempt_at: Date | null;
  claim_provider_message_id: string | null;
  claim_updated_at: Date;
  was_uncertain: boolean | null;
  waiting_reason: string | null;
  waiting_since: Date;
  wake_at: Date | null;
  gives_up_at: Date | null;
  status: MessageStatus | null;
  step: number | null;
  revision: number | null;
  reason: string | null;
  held_reason: string | null;
  held_since: Date | null;
  held_until: Date | null;
  held_gives_up_at: Date | null;
  attempts: number | null;
  submitted_at: Date | null;
  sent_at: Date | null;
  delivered_at: Date | null;
  read_at: Date | null;
  failed_at: Date | null;
  error_code: string | null;
  error_provider_code: string | null;
  error_text: string | null;
  error_at: Date | null;
  provider_message_id: string | null;
  waits: Array<{ reason: string; ms: number }> | null;
  range_status: 'refused' | 'cancelled' | 'expired' | 'failed' | null;
  range_reason: string;
  range_at: Date;
}

/** Facts of messages of one run, in the order asked. */
export async function readMessageFacts(
  database: Database,
  runId: Buffer,
  occurrenceIds: Buffer[],
  positions: number[],
): Promise<MessageFacts[]> {
  const rows = await database.rows<FactsRow>(READ_FACTS, [occurrenceIds, positions, runId]);
  return rows.map(factsOf);
}

function factsOf(row: FactsRow): MessageFacts {
  return {
    claim: row.state && {
      state: row.state,
      step: row.claim_step,
      attempt: row.claim_attempt,
      reason: row.claim_reason,
      errorCode: row.claim_error_code,
      nextAttemptAtMs: ms(row.next_attempt_at),
      providerMessageId: row.claim_provider_message_id,
      updatedAtMs: row.claim_updated_at.getTime(),
      wasUncertain: row.was_uncertain ?? false,
    },
    waiting: row.waiting_reason
      ? {
          reason: row.waiting_reason,
          sinceMs: row.waiting_since.getTime(),
          wakeAtMs: ms(row.wake_at),
          givesUpAtMs: ms(row.gives_up_at),
        }
      : null,
    projected: row.status && {
      status: row.status,
      step: row.step,
      revision: row.revision,
      reason: row.reason,
      waiting:
        row.held_reason && row.held_since
          ? {
              reason: row.held_reason,
              sinceMs: row.held_since.getTime(),
              wakeAtMs: ms(row.held_until),
              givesUpAtMs: ms(row.held_gives_up_at),
            }
          : null,
      attempts: row.attempts ?? 0,
      submittedAtMs: ms(row.submitted_at),
      sentAtMs: ms(row.sent_at),
      deliveredAtMs: ms(row.delivered_at),
      readAtMs: ms(row.read_at),
      failedAtMs: ms(row.failed_at),
      error: row.error_code
        ? { code: row.error_code, providerCode: row.error_provider_code, text: row.error_text, atMs: ms(row.error_at) }
        : null,
      providerMessageId: row.provider_message_id,
      waits: row.waits ?? [],
    },
    range: row.range_status && { status: row.range_status, reason: row.range_reason, atMs: row.range_at.getTime() },
  };
}

function ms(date: Date | null): number | null {
  return date?.getTime() ?? null;
}

export interface LocatedRecipient {
  audienceId: string;
  chunk: number;
  index: number;
  body: Buffer;
}

/** Where a recipient lies, by its hash; in the audience of this revision first, then in older ones. */
export async function locateRecipient(
  database: Database,
  scheduleId: string,
  audienceId: string,
  hash: Buffer,
): Promise<LocatedRecipient | null> {
  const rows = await database.rows<{ audience_id: string; chunk: number; hashes: Buffer; body: Buffer }>(LOCATE, [
    scheduleId,
    hash,
    audienceId,
  ]);
  for (const row of rows) {
    for (let at = row.hashes.indexOf(hash); at >= 0; at = row.hashes.indexOf(hash, at + 1)) {
      if (at % HASH_BYTES === 0) return { audienceId: row.audience_id, chunk: row.chunk, index: at / HASH_BYTES, body: row.body };
    }
  }
  return null;
}

export interface ChunkRow {
  chunk: number;
  count: number;
  hashes: Buffer;
  body: Buffer;
}

export async function readChunk(database: Database, audienceId: string, chunk: number): Promise<ChunkRow | null> {
  const [row] = await database.rows<ChunkRow>(READ_CHUNK, [audienceId, chunk]);
  return row ?? null;
}

interface RunRow {
  sending: number;
  waiting: number;
  outcome: string | null;
  completed_at: Date | null;
  first_called_at: Date | null;
  last_called_at: Date | null;
  counted: RunFacts['counted'];
}

export async function readRunFacts(database: Database, runId: Buffer, nowMs: number): Promise<RunFacts> {
  const [row] = await database.rows<RunRow>(READ_RUN, [runId]);
  return {
    counted: row?.counted ?? [],
    sending: row?.sending ?? 0,
    waiting: row?.waiting ?? 0,
    outcome: row?.outcome ?? null,
    completedAtMs: ms(row?.completed_at ?? null),
    firstCalledAtMs: ms(row?.first_called_at ?? null),
    lastCalledAtMs: ms(row?.last_called_at ?? null),
    nowMs,
  };
}
