import { formatId, newUuid, parseId, uuidBytes, uuidText } from '#contracts/ids';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { ApiParts } from './api-parts';
import { answerRecord, type Answer, type Call, type Outcome } from './call';
import { hashApiKey, keyHint, newApiKey } from './keys/api-key';
import { repeatedBy } from './postgres/answers';
import { refuse } from './problem/problem-table';
import type { CreateApiKeyBody, CreateTenantBody } from './request/tenant-request';
import type { Mode } from './schedule/definition';
import { join } from 'node:path';

const POSTGRES = join(__dirname, 'postgres');
const CREATE_TENANT = sqlFile(POSTGRES, 'create-tenant.sql');
const CREATE_KEY = sqlFile(POSTGRES, 'create-api-key.sql');
const FIND_TENANT = sqlFile(POSTGRES, 'find-tenant.sql');

interface TenantRow {
  id: string;
  name: string;
  mode: Mode;
  created_at: Date;
}

export async function createTenant(parts: ApiParts, call: Call<unknown, unknown, CreateTenantBody>): Promise<Outcome> {
  const id = newUuid(call.nowMs);
  const at = new Date(call.nowMs);
  const { name, mode } = call.body;
  const answer: Answer = {
    status: 201,
    headers: { location: `/v1/admin/tenants/${formatId('ten', id)}` },
    body: tenantView({ id: uuidText(id), name, mode, created_at: at }),
  };
  const tenant = { id: uuidText(id), name, mode, at: at.toISOString() };
  try {
    await parts.database.rows(CREATE_TENANT, [
      JSON.stringify(tenant),
      JSON.stringify(answerRecord(call, answer)),
      call.idempotency?.requestHash ?? null,
    ]);
  } catch (error) {
    const repeated = repeatedBy(error);
    if (repeated) return repeated;
    throw error;
  }
  return answer;
}

export async function readTenant(parts: ApiParts, call: Call<{ id: string }>): Promise<Outcome> {
  const row = await findTenant(parts, call.params.id);
  return row ? { status: 200, body: tenantView(row) } : refuse('tenant_not_found');
}

/** The operator makes a tenant's first key. */
export async function createKeyForTenant(
  parts: ApiParts,
  call: Call<{ id: string }, unknown, CreateApiKeyBody>,
): Promise<Outcome> {
  const tenant = await findTenant(parts, call.params.id);
  return tenant ? createKey(parts, call, tenant.id, tenant.mode) : refuse('tenant_not_found');
}

/** A key can't make one that may do more than itself. */
export async function createOwnKey(parts: ApiParts, call: Call<unknown, unknown, CreateApiKeyBody>): Promise<Outcome> {
  const { scopes, tenantId, mode } = call.caller;
  const errors = call.body.scopes.flatMap((scope, index) =>
    scopes.has(scope)
      ? []
      : [
          {
            pointer: `#/scopes/${index}`,
            code: 'scope_missing',
            detail: 'this key does not have the scope itself',
            given: scope,
          },
        ],
  );
  return errors.length > 0 ? refuse('request_invalid', { errors }) : createKey(parts, call, tenantId, mode);
}

async function createKey(
  parts: ApiParts,
  call: Call<unknown, unknown, CreateApiKeyBody>,
  tenantId: string,
  mode: Mode,
): Promise<Outcome> {
  const id = newUuid(call.nowMs);
  const key = newApiKey(mode);
  const at = new Date(call.nowMs).toISOString();
  const scopes = [...new Set(call.body.scopes)];
  const shown = {
    id: formatId('key', id),
    name: call.body.name,
    mode,
    scopes,
    hint: keyHint(key),
    createdAt: at,
  };
  const row = { id: uuidText(id), tenantId, name: call.body.name, scopes, hint: keyHint(key), by: call.caller.actor, at };
  try {
    const [written] = await parts.database.rows<{ created: boolean }>(CREATE_KEY, [
      JSON.stringify(row),
      hashApiKey(key),
      call.caller.tenantId,
      // The key itself is shown once and kept nowhere: a repeat gets everything else.
      JSON.stringify(answerRecord(call, { status: 201, body: shown })),
      call.idempotency?.requestHash ?? null,
    ]);
    if (!written?.created) return refuse('tenant_not_found');
  } catch (error) {
    const repeated = repeatedBy(error);
    if (repeated) return repeated;
    throw error;
  }
  return { status: 201, body: { ...shown, key } };
}

async function findTenant(parts: ApiParts, name: string): Promise<TenantRow | null> {
  const id = parseId('ten', name);
  if (!id) return null;
  const [row] = await parts.database.rows<TenantRow>(FIND_TENANT, [uuidText(id)]);
  return row ?? null;
}

function tenantView(row: TenantRow): Record<string, unknown> {
  return { id: formatId('ten', uuidBytes(row.id)), name: row.name, mode: row.mode, createdAt: row.created_at.toISOString() };
}
