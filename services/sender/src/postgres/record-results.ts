import type { ClaimState } from '#contracts/words';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { MAX_BATCH, type AttemptResult, type RecordedResult, type ResultOptions } from './gate-port';
import { inBatches } from './in-batches';

const RECORD_RESULTS = sqlFile(__dirname, 'record-results.sql');

/** What the five kinds of result have in common, as columns. */
interface ResultColumns {
  errorCode: string | null;
  providerCode: string | null;
  text: string | null;
  providerMessageId: string | null;
  providerStatus: string | null;
  reachedProvider: boolean | null;
  nextAttemptAt: number | null;
  usesRetry: boolean;
  reason: string | null;
}

const NONE: ResultColumns = {
  errorCode: null,
  providerCode: null,
  text: null,
  providerMessageId: null,
  providerStatus: null,
  reachedProvider: null,
  nextAttemptAt: null,
  usesRetry: false,
  reason: null,
};

export async function recordResults(
  database: Database,
  items: readonly AttemptResult[],
  { evidenceWindowMs, resendAfterMs }: ResultOptions,
): Promise<RecordedResult[]> {
  return inBatches(items, MAX_BATCH, (batch) => {
    const columns = batch.map(columnsOf);
    return database.rows<{ applied: boolean; state: ClaimState | null; step: number }>(RECORD_RESULTS, [
      batch.map((item) => item.occurrenceId),
      batch.map((item) => item.attempt),
      batch.map((item) => item.outcome),
      batch.map((item) => item.calledAt),
      batch.map((item) => item.endedAt),
      columns.map((column) => column.errorCode),
      columns.map((column) => column.providerCode),
      columns.map((column) => column.text),
      columns.map((column) => column.providerMessageId),
      columns.map((column) => column.providerStatus),
      columns.map((column) => column.reachedProvider),
      columns.map((column) => column.nextAttemptAt),
      columns.map((column) => column.usesRetry),
      columns.map((column) => column.reason),
      batch.map((item) => (item.waits && item.waits.length > 0 ? JSON.stringify(item.waits) : null)),
      batch.map((item) => item.traceId ?? null),
      batch.map((item) => item.traceparent ?? null),
      evidenceWindowMs,
      resendAfterMs,
    ]);
  });
}

function columnsOf(result: AttemptResult): ResultColumns {
  switch (result.outcome) {
    case 'accepted':
      return { ...NONE, providerMessageId: result.providerMessageId, providerStatus: result.providerStatus };
    case 'failed':
      return { ...NONE, ...errorOf(result), reachedProvider: result.reachedProvider };
    case 'retry':
      return {
        ...NONE,
        ...errorOf(result),
        nextAttemptAt: result.nextAttemptAt,
        usesRetry: result.usesRetry,
        reason: result.waitReason,
      };
    case 'not_sent':
      return { ...NONE, text: result.text ?? null, nextAttemptAt: result.nextAttemptAt ?? null, reason: 'retry' };
    case 'uncertain':
      return { ...NONE, errorCode: 'outcome_unknown', text: result.text ?? result.reason, reason: result.reason };
    default:
      return result satisfies never;
  }
}

function errorOf(error: { code: string; providerCode?: string | null; text?: string | null }) {
  return { errorCode: error.code, providerCode: error.providerCode ?? null, text: error.text ?? null };
}
