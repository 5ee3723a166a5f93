import type { Codec } from '#contracts/codec';
import { CodecError } from '#contracts/codec';
import type { InBatch } from '#runtime/kafka/port';
import type { EvidenceItem, GatePort } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

/** Receipts of providers, as evidence about attempts: stored whatever the claim's state, and settling those that are uncertain. */
export async function settleEvidence(
  batch: InBatch,
  { codec, gate }: { codec: Codec; gate: Pick<GatePort, 'recordEvidence'> },
): Promise<number> {
  const items = batch.records.flatMap(({ value }): EvidenceItem[] => {
    const { name, event } = codec.decode(value);
    if (name !== 'ReceiptRecorded') throw new CodecError('unknown_schema', `${name} on the topic of receipts`);
    const { occurrenceId, attempt, kind, providerAt, providerMessageId, code, providerCode, text } = event;
    // A word of a later version: what it says about sending is not known here.
    if (kind === 'unknown') return [];
    return [{ occurrenceId, attempt, kind, providerAt, providerMessageId, code, providerCode, text }];
  });
  if (items.length === 0) return 0;
  const settled = await gate.recordEvidence(items);
  senderMetrics.evidence.add(settled);
  return settled;
}
