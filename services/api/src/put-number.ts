import { createHash } from 'node:crypto';
import { formatId, newUuid, uuidBytes, uuidText } from '#contracts/ids';
import { sqlState } from '#runtime/postgres/failures';
import { seal } from '#runtime/sealed-secret';
import { againAfterConflict } from './again-after-conflict';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Outcome } from './call';
import { findNumber, putNumber, type NumberRow } from './postgres/numbers';
import { refuse, type Refusal } from './problem/problem-table';
import { DEFAULT_RATE_PER_SECOND, type PutNumberBody } from './request/number-request';
import { isoOrNull } from './schedule/schedule-view';

type PutCall = Call<{ number: string }, unknown, PutNumberBody>;

export async function registerNumber(parts: ApiParts, call: PutCall): Promise<Outcome> {
  const once = async () => writeOnce(parts, call, await findNumber(parts.database, call.caller.tenantId, call.params.number));
  const outcome = await againAfterConflict(once, (answer) => answer === 'conflict');
  return outcome === 'conflict' ? refuse('unavailable', { headers: { 'retry-after': '1' } }) : outcome;
}

async function writeOnce(parts: ApiParts, call: PutCall, before: NumberRow | null): Promise<Answer | Refusal | 'conflict'> {
  const { body, caller, params, nowMs } = call;
  if (!before && !body.credentials) {
    return refuse('request_invalid', {
      errors: [{ pointer: '#/credentials', code: 'required', detail: 'a new number needs credentials' }],
    });
  }
  const id = before?.id ?? uuidText(newUuid(nowMs));
  // What the sealed bytes are bound to: the row they lie in.
  const owner = formatId('num', uuidBytes(id));
  const sealed = (plain: string | undefined) => (plain === undefined ? null : seal(parts.credentialsKey, plain, owner));
  const credentials = body.credentials && JSON.stringify(body.credentials);
  try {
    const written = await putNumber(parts.database, {
      id,
      tenantId: caller.tenantId,
      name: params.number,
      kind: body.kind,
      mode: caller.mode,
      channel: 'whatsapp',
      provider: body.provider.name,
      providerIdentity: `${body.provider.name}:${body.provider.numberId}`,
      providerNumberId: body.provider.numberId,
      wabaId: body.provider.wabaId ?? null,
      appId: body.provider.appId ?? null,
      ratePerSecond: body.ratePerSecond ?? DEFAULT_RATE_PER_SECOND[body.kind],
      credentials: sealed(credentials),
      fingerprint: credentials ? fingerprint(credentials) : null,
      webhookSecret: sealed(body.webhook?.appSecret),
      webhookVerifyToken: sealed(body.webhook?.verifyToken),
      expectedVersion: before?.version ?? 0,
      at: new Date(nowMs).toISOString(),
    });
    if (!written) return 'conflict';
  } catch (error) {
    if (sqlState(error) === '23505' && (error as { constraint?: string }).constraint === 'number_provider_identity_key') {
      return refuse('number_taken', {
        errors: [
          {
            pointer: '#/provider/numberId',
            code: 'number_taken',
            detail: 'it is registered under another name or by another tenant',
          },
        ],
      });
    }
    throw error;
  }
  const after = await findNumber(parts.database, caller.tenantId, params.number);
  if (!after) throw new Error(`the number ${owner} was written and is not there`);
  return { status: before ? 200 : 201, headers: { location: `/v1/numbers/${params.number}` }, body: numberView(after) };
}

export async function readNumber(parts: ApiParts, call: Call<{ number: string }>): Promise<Outcome> {
  const row = await findNumber(parts.database, call.caller.tenantId, call.params.number);
  return row ? { status: 200, body: numberView(row) } : refuse('number_not_found');
}

/** Enough to see that the credentials are the ones you have; nothing can be computed back from 48 bits of a hash. */
function fingerprint(credentials: string): string {
  return createHash('sha256').update(credentials).digest('hex').slice(0, 12);
}

function numberView(row: NumberRow): Record<string, unknown> {
  const id = formatId('num', uuidBytes(row.id));
  return {
    id,
    name: row.name,
    kind: row.kind,
    mode: row.mode,
    channel: row.channel,
    provider: { name: row.provider, numberId: row.provider_number_id, wabaId: row.waba_id, appId: row.app_id },
    ratePerSecond: row.rate_per_second,
    credentials: { fingerprint: row.credentials_fingerprint, updatedAt: row.credentials_updated_at.toISOString() },
    webhook: { path: `/webhooks/whatsapp/${id}`, configured: row.has_webhook },
    learnedRatePerSecond: row.learned_rate,
    hold: row.hold_reason
      ? {
          reason: row.hold_reason,
          since: isoOrNull(row.hold_since?.getTime() ?? null),
          until: isoOrNull(row.hold_until?.getTime() ?? null),
          detail: row.hold_detail,
        }
      : null,
    version: row.version,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}
