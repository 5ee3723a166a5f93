import type { ReceiptKind } from '#contracts/events';

/** One status of one message, as Meta told it. */
export interface WhatsAppStatus {
  providerMessageId: string | null;
  /** What we gave with the send; null where it came without. */
  token: string | null;
  kind: ReceiptKind;
  /** Meta's word where it is none that we know. */
  unknownStatus: string | null;
  providerAtMs: number;
  error: { code: string; text: string | null } | null;
}

export interface ParsedWebhook {
  statuses: WhatsAppStatus[];
  /** What else was in the body, by Meta's field name: kept in the topic, without an effect here. */
  ignored: Record<string, number>;
}

/** Not a webhook body at all: signed, so it came from Meta's app, but nothing can be read from it. */
export class UnreadableWebhook extends Error {
  override readonly name = 'UnreadableWebhook';
}

const KINDS: ReadonlySet<string> = new Set(['sent', 'delivered', 'read', 'failed', 'played']);

/**
 * Reads every status of every change of every entry: a POST may hold a thousand of them, over several accounts. What we do not
 * know is counted and left alone, since Meta adds fields and statuses without notice, and a refusal would make it send the
 * whole batch again for days. Throws UnreadableWebhook only when the body is no JSON object.
 */
export function parseWhatsAppWebhook(body: Buffer, receivedAtMs: number): ParsedWebhook {
  const parsed: ParsedWebhook = { statuses: [], ignored: {} };
  const ignore = (field: string) => (parsed.ignored[field] = (parsed.ignored[field] ?? 0) + 1);
  for (const entry of list(readJson(body).entry)) {
    const entryAtMs = secondsToMs(entry.time);
    for (const change of list(entry.changes)) {
      const value = isRecord(change.value) ? change.value : {};
      const field = text(change.field) ?? 'unnamed';
      if (field !== 'messages') {
        ignore(field);
        continue;
      }
      for (const status of list(value.statuses)) {
        const read = readStatus(status, entryAtMs ?? receivedAtMs);
        if (read) parsed.statuses.push(read);
        else ignore('statuses');
      }
      for (const other of ['messages', 'errors'] as const) list(value[other]).forEach(() => ignore(`messages.${other}`));
    }
  }
  return parsed;
}

function readStatus(status: Json, fallbackAtMs: number): WhatsAppStatus | null {
  const providerMessageId = text(status.id);
  const token = text(status.biz_opaque_callback_data);
  const word = text(status.status);
  if (word === null || (providerMessageId === null && token === null)) return null;
  const known = KINDS.has(word);
  return {
    providerMessageId,
    token,
    kind: known ? (word as ReceiptKind) : 'unknown',
    unknownStatus: known ? null : shortText(word, 64),
    providerAtMs: secondsToMs(status.timestamp) ?? fallbackAtMs,
    error: readError(list(status.errors)[0]),
  };
}

function readError(error: Json | undefined): WhatsAppStatus['error'] {
  if (!error) return null;
  const code = typeof error.code === 'number' ? String(error.code) : shortText(error.code, 32);
  const details = isRecord(error.error_data) ? shortText(error.error_data.details, 500) : null;
  return { code: code ?? 'none', text: details ?? shortText(error.message, 500) ?? shortText(error.title, 500) };
}

type Json = Record<string, unknown>;

function readJson(body: Buffer): Json {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's own error quotes the body.
    throw new UnreadableWebhook('the body is not JSON');
  }
  if (!isRecord(value)) throw new UnreadableWebhook('the body is not a JSON object');
  return value;
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Control characters and halves of surrogate pairs: PostgreSQL refuses the first in text and the second when JSON is read. */
// eslint-disable-next-line no-control-regex
const UNSTORABLE = /[\u0000-\u001f\u007f]|\p{Cs}/gu;

function text(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null;
  return value.replace(UNSTORABLE, ' ');
}

/** Cut before it is cleaned: the cut may fall between the halves of a character. */
function shortText(value: unknown, length: number): string | null {
  return text(typeof value === 'string' ? value.slice(0, length) : value);
}

/** Meta writes seconds, as text in statuses and as a number elsewhere. */
function secondsToMs(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d{1,11}$/.test(value) ? Number(value) : value;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 && seconds < 1e11
    ? Math.round(seconds * 1000)
    : null;
}
