import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';

const FIND = sqlFile(__dirname, 'find-number.sql');
const PUT = sqlFile(__dirname, 'put-number.sql');

export interface NumberRow {
  id: string;
  name: string;
  kind: 'whatsapp';
  mode: 'test' | 'live';
  channel: 'whatsapp' | 'sms';
  provider: string;
  provider_identity: string;
  provider_number_id: string;
  waba_id: string | null;
  app_id: string | null;
  rate_per_second: number;
  credentials_fingerprint: string;
  credentials_updated_at: Date;
  has_webhook: boolean;
  version: number;
  created_at: Date;
  updated_at: Date;
  learned_rate: number | null;
  hold_reason: string | null;
  hold_since: Date | null;
  hold_until: Date | null;
  hold_detail: string | null;
}

export async function findNumber(database: Database, tenantId: string, name: string): Promise<NumberRow | null> {
  const [row] = await database.rows<NumberRow>(FIND, [tenantId, name]);
  return row ?? null;
}

/** What is written of a number; null secrets leave those that are stored. */
export interface NumberWrite {
  id: string;
  tenantId: string;
  name: string;
  kind: string;
  mode: string;
  channel: string;
  provider: string;
  providerIdentity: string;
  providerNumberId: string;
  wabaId: string | null;
  appId: string | null;
  ratePerSecond: number;
  credentials: Buffer | null;
  fingerprint: string | null;
  webhookSecret: Buffer | null;
  webhookVerifyToken: Buffer | null;
  /** 0: it must not exist yet. */
  expectedVersion: number;
  at: string;
}

/** False: somebody else wrote the number meanwhile. A taken provider identity is a unique violation. */
export async function putNumber(database: Database, write: NumberWrite): Promise<boolean> {
  const { credentials, webhookSecret, webhookVerifyToken, ...plain } = write;
  const [row] = await database.rows<{ written: boolean }>(PUT, [
    JSON.stringify(plain),
    credentials,
    webhookSecret,
    webhookVerifyToken,
  ]);
  return row?.written ?? false;
}
