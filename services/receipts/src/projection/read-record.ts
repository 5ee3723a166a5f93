import { readAttemptToken } from '#contracts/attempt-token';
import type { Codec } from '#contracts/codec';
import type { Events } from '#contracts/events';
import type { InRecord } from '#runtime/kafka/port';
import { readDelivery } from '../status/read-delivery';
import { meaningOfCode } from '../webhooks/whatsapp/error-codes';
import { parseWhatsAppWebhook, UnreadableWebhook, type WhatsAppStatus } from '../webhooks/whatsapp/parse-webhook';
import { isPackedBy, unpackBody } from '../webhooks/pack-body';
import type { Evidence, Item, NamelessEvidence } from './items';

/** What the projection leaves aside, for the metric: Meta's field names, `body` for what can't be read, `token` for foreign ones. */
export type OnIgnored = (what: string, count: number) => void;

/** Throws a CodecError for bytes that are no event of ours; the consumer parks the record then. */
export function readRecord(
  codec: Codec,
  tokenKey: Uint8Array,
  { value, headers }: Pick<InRecord, 'value' | 'headers'>,
  onIgnored: OnIgnored,
): Item {
  const read = codec.decode(value);
  switch (read.name) {
    case 'WebhookReceived':
      return readWebhook(tokenKey, read.event, isPackedBy(headers), onIgnored);
    case 'RunPlanned':
    case 'RecipientsRefused':
    case 'RunReleased':
    case 'RunHeld':
      return { about: 'run', told: read };
    case 'ScheduleResumed':
    case 'ScheduleCancelled':
      return { about: 'schedule', told: read };
    default: {
      const delivery = readDelivery(read);
      return delivery ? { about: 'message', delivery } : { about: 'nothing' };
    }
  }
}

function readWebhook(
  tokenKey: Uint8Array,
  { body, at, provider }: Events['WebhookReceived'],
  isPacked: boolean,
  onIgnored: OnIgnored,
): Item {
  if (provider !== 'whatsapp_cloud') {
    onIgnored('provider', 1);
    return { about: 'nothing' };
  }
  const evidence: Evidence[] = [];
  const nameless: NamelessEvidence[] = [];
  try {
    const parsed = parseWhatsAppWebhook(unpackBody({ bytes: body, isPacked }), at);
    for (const [field, count] of Object.entries(parsed.ignored)) onIgnored(field, count);
    for (const status of parsed.statuses) {
      const about = evidenceOf(status, at);
      const named = status.token === null ? null : readAttemptToken(tokenKey, status.token);
      if (named) evidence.push({ ...named, ...about, providerMessageId: status.providerMessageId });
      else if (status.providerMessageId !== null) nameless.push({ ...about, providerMessageId: status.providerMessageId });
      else onIgnored('token', 1);
    }
  } catch (error) {
    if (!(error instanceof UnreadableWebhook)) throw error;
    onIgnored('body', 1);
  }
  return { about: 'evidence', evidence, nameless };
}

function evidenceOf({ kind, providerAtMs, error, unknownStatus }: WhatsAppStatus, recordedAt: number) {
  return {
    kind,
    providerAt: providerAtMs,
    recordedAt,
    code: kind === 'failed' ? meaningOfCode(error?.code ?? '') : null,
    providerCode: error?.code ?? null,
    text: error?.text ?? unknownStatus,
  };
}
