import type { Codec } from '#contracts/codec';
import { OCCURRENCE_ID_BYTES, RECIPIENT_HASH_BYTES, RUN_ID_BYTES } from '#contracts/ids';
import type { OutRecord } from '#runtime/kafka/port';
import type { Slice } from '../planning/slice';

/** One record for each position. The hot loop of a release: 100,000 records have to be through within two seconds. */
export function executionRecords(
  codec: Codec,
  slice: Slice,
  positions: readonly number[],
  releasedAt: number,
  traceparent: string | undefined,
): OutRecord[] {
  const headers = traceparent === undefined ? undefined : { traceparent };
  const ids = Buffer.allocUnsafe(positions.length * OCCURRENCE_ID_BYTES);
  const { scheduleId, revision, numberId, dueAt, validUntil, priority, runId, hashes, from } = slice;
  return positions.map((position, index) => {
    const at = index * OCCURRENCE_ID_BYTES;
    const hashAt = (position - from) * RECIPIENT_HASH_BYTES;
    runId.copy(ids, at);
    hashes.copy(ids, at + RUN_ID_BYTES, hashAt, hashAt + RECIPIENT_HASH_BYTES);
    const occurrenceId = ids.subarray(at, at + OCCURRENCE_ID_BYTES);
    const value = codec.encode('ExecutionDue', {
      occurrenceId,
      scheduleId,
      revision,
      numberId,
      dueAt,
      releasedAt,
      validUntil,
      priority,
      position,
    });
    return headers === undefined ? { key: occurrenceId, value } : { key: occurrenceId, value, headers };
  });
}
