import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { sqlState } from '#runtime/postgres/failures';
import { answerRecord, type Answer, type Call, type Idempotency, type Repeated } from '../call';

const FIND = sqlFile(__dirname, 'find-answer.sql');
const REMEMBER = sqlFile(__dirname, 'remember-answer.sql');
const FORGET = sqlFile(__dirname, 'forget-answers.sql');

export interface KeptAnswer {
  requestHash: Buffer;
  status: number;
  headers: Record<string, string>;
  body: string;
}

export async function findAnswer(database: Database, tenantId: string, named: Idempotency): Promise<KeptAnswer | null> {
  const [row] = await database.rows<{ request_hash: Buffer; status: number; headers: Record<string, string>; body: string }>(
    FIND,
    [tenantId, named.endpoint, named.key],
  );
  return row ? { requestHash: row.request_hash, status: row.status, headers: row.headers, body: row.body } : null;
}

/** Answers are kept for 24 hours. One step: at most 5,000 of them. */
export async function forgetAnswers(database: Database): Promise<void> {
  await database.rows(FORGET);
}

/** SQLSTATEs of `api.remember_answer`. */
export function repeatedBy(error: unknown): Repeated | null {
  switch (sqlState(error)) {
    case 'PA208':
      return { repeated: 'done' };
    case 'PA409':
      return { repeated: 'running' };
    default:
      return null;
  }
}

/**
 * For answers that are known only after the change itself, and that a repeat without this record would give again anyway
 * (receipts are counted once and kept).
 */
export async function rememberAnswer(database: Database, call: Call, answer: Answer): Promise<Answer | Repeated> {
  const record = answerRecord(call, answer);
  if (!record || !call.idempotency) return answer;
  const values = [call.caller.tenantId, JSON.stringify(record), call.idempotency.requestHash, new Date(call.nowMs).toISOString()];
  try {
    await database.rows(REMEMBER, values);
    return answer;
  } catch (error) {
    const repeated = repeatedBy(error);
    if (repeated) return repeated;
    throw error;
  }
}
