CREATE TABLE api.tenant (
  id uuid PRIMARY KEY,
  name text NOT NULL CHECK (name <> ''),
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  created_at timestamptz NOT NULL
);

-- Only the hash of a key is kept: a copy of this table opens nothing.
CREATE TABLE api.api_key (
  id uuid PRIMARY KEY,
  tenant_id uuid NOT NULL REFERENCES api.tenant,
  name text NOT NULL,
  scopes text[] NOT NULL,
  key_hash bytea NOT NULL CONSTRAINT api_key_hash_key UNIQUE CHECK (octet_length(key_hash) = 32),
  hint text NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX api_key_tenant ON api.api_key (tenant_id, id);

CREATE TABLE api.number (
  id uuid PRIMARY KEY,
  tenant_id uuid NOT NULL REFERENCES api.tenant,
  name text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('whatsapp')),
  mode text NOT NULL CHECK (mode IN ('test', 'live')),
  channel text NOT NULL CHECK (channel IN ('whatsapp', 'sms')),
  provider text NOT NULL,
  -- One provider identity exists once per installation: two rows would mean two paces for one real number.
  provider_identity text NOT NULL CONSTRAINT number_provider_identity_key UNIQUE,
  provider_number_id text NOT NULL,
  waba_id text,
  app_id text,
  rate_per_second numeric NOT NULL CHECK (rate_per_second > 0),
  credentials bytea NOT NULL,
  credentials_fingerprint text NOT NULL,
  credentials_updated_at timestamptz NOT NULL,
  webhook_secret bytea,
  webhook_verify_token bytea,
  version int NOT NULL CHECK (version > 0),
  removed boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT number_name_key UNIQUE (tenant_id, name)
);

-- The record: what happened to a schedule, in order. Never updated.
CREATE TABLE api.schedule_event (
  schedule_id uuid NOT NULL,
  version int NOT NULL CHECK (version > 0),
  name text NOT NULL CHECK (name IN ('requested', 'revised', 'paused', 'resumed', 'cancelled')),
  data jsonb NOT NULL,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  correlation_id text NOT NULL,
  traceparent text,
  PRIMARY KEY (schedule_id, version)
);

-- The stream's state after its last event, and what lists and guards need as columns. Can be rebuilt from the stream.
CREATE TABLE api.schedule (
  id uuid PRIMARY KEY,
  tenant_id uuid NOT NULL REFERENCES api.tenant,
  external_id text,
  version int NOT NULL,
  revision int NOT NULL CHECK (revision BETWEEN 1 AND version),
  status text NOT NULL CHECK (status IN ('active', 'cancelled')),
  number_id uuid NOT NULL REFERENCES api.number,
  audience_id uuid NOT NULL,
  recipients int NOT NULL CHECK (recipients > 0),
  run_id bytea NOT NULL CONSTRAINT schedule_run_key UNIQUE CHECK (octet_length(run_id) = 12),
  due_at timestamptz NOT NULL,
  labels jsonb NOT NULL,
  state jsonb NOT NULL,
  -- Null where a duplicate is allowed or cannot be one (a single recipient).
  duplicate_hash bytea,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT schedule_external_id_key UNIQUE (tenant_id, external_id)
);
CREATE UNIQUE INDEX schedule_duplicate_key ON api.schedule (tenant_id, duplicate_hash)
  WHERE status = 'active' AND duplicate_hash IS NOT NULL;
CREATE INDEX schedule_of_tenant ON api.schedule (tenant_id, id DESC);
CREATE INDEX schedule_labels ON api.schedule USING gin (labels jsonb_path_ops);

-- What a revision says and to whom: senders render from here.
CREATE TABLE api.content (
  schedule_id uuid NOT NULL,
  revision int NOT NULL,
  tenant_id uuid NOT NULL,
  audience_id uuid NOT NULL,
  content jsonb NOT NULL,
  category text NOT NULL CHECK (category IN ('marketing', 'utility', 'authentication')),
  mode text NOT NULL,
  labels jsonb NOT NULL,
  external_id text,
  correlation_id text NOT NULL,
  traceparent text,
  PRIMARY KEY (schedule_id, revision)
);

-- The counts that a cancel or a pause answered: the same question gets the same answer again.
CREATE TABLE api.schedule_receipt (
  schedule_id uuid NOT NULL,
  version int NOT NULL,
  kind text NOT NULL CHECK (kind IN ('cancel', 'pause')),
  at timestamptz NOT NULL,
  total int NOT NULL,
  prevented int NOT NULL CHECK (prevented >= 0),
  in_flight int NOT NULL CHECK (in_flight >= 0),
  submitted int NOT NULL CHECK (submitted >= 0),
  uncertain int NOT NULL CHECK (uncertain >= 0),
  ended int NOT NULL CHECK (ended >= 0),
  PRIMARY KEY (schedule_id, version),
  CONSTRAINT schedule_receipt_adds_up CHECK (prevented + in_flight + submitted + uncertain + ended = total)
);

CREATE TABLE api.idempotency (
  -- The tenant, or the nil UUID for the operator.
  tenant_id uuid NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  request_hash bytea NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT idempotency_key PRIMARY KEY (tenant_id, endpoint, key)
);
CREATE INDEX idempotency_age ON api.idempotency (created_at);

CREATE TABLE api.outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane int NOT NULL,
  topic text NOT NULL,
  key bytea NOT NULL,
  headers jsonb,
  value bytea,
  draft jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((value IS NULL) <> (draft IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_lane ON api.outbox (lane, id);

CREATE TABLE api.outbox_parked (
  id bigint PRIMARY KEY,
  lane int NOT NULL,
  topic text NOT NULL,
  key bytea NOT NULL,
  headers jsonb,
  value bytea,
  draft jsonb,
  reason text NOT NULL,
  parked_at timestamptz NOT NULL DEFAULT now()
);
-- Recipients, sealed when they are accepted. An upload is invisible until it is whole: nothing reads an audience that is not ready.
CREATE TABLE api.audience (
  id uuid PRIMARY KEY,
  tenant_id uuid NOT NULL REFERENCES api.tenant,
  name text,
  source text NOT NULL CHECK (source IN ('upload', 'inline')),
  status text NOT NULL CHECK (status IN ('uploading', 'ready')),
  accepted int NOT NULL CHECK (accepted >= 0),
  rejected int NOT NULL CHECK (rejected >= 0),
  duplicates int NOT NULL CHECK (duplicates >= 0),
  chunk_count int NOT NULL CHECK (chunk_count = (accepted + 499) / 500),
  -- The parameters, in the order of their values in the chunks.
  columns text[] NOT NULL,
  -- Of each parameter that some recipients leave out: how many, and the first row.
  missing jsonb NOT NULL DEFAULT '{}',
  set_hash bytea,
  rejected_sample jsonb NOT NULL DEFAULT '[]',
  warnings jsonb NOT NULL DEFAULT '[]',
  sample jsonb NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL,
  -- Moves while an upload goes on; one that stands still belongs to a process that died.
  touched_at timestamptz NOT NULL,
  CHECK ((status = 'ready') = (set_hash IS NOT NULL))
);
CREATE INDEX audience_of_tenant ON api.audience (tenant_id, id DESC) WHERE status = 'ready';
CREATE INDEX audience_unfinished ON api.audience (touched_at) WHERE status = 'uploading';

CREATE TABLE api.audience_chunk (
  -- An upload that is discarded takes a chunk along that is stored at that very moment: the reference sees it, one statement could not.
  audience_id uuid NOT NULL REFERENCES api.audience ON DELETE CASCADE,
  chunk int NOT NULL CHECK (chunk >= 0),
  count int NOT NULL CHECK (count BETWEEN 1 AND 500),
  hashes bytea NOT NULL CHECK (octet_length(hashes) = count * 8),
  body bytea NOT NULL,
  PRIMARY KEY (audience_id, chunk)
);
-- Deflated bodies and keyed hashes do not compress again.
ALTER TABLE api.audience_chunk ALTER COLUMN hashes SET STORAGE EXTERNAL, ALTER COLUMN body SET STORAGE EXTERNAL;

-- Rows that were refused, a thousand a page, as a JSON array of {row, value, code}; values are shortened.
CREATE TABLE api.audience_rejected (
  audience_id uuid NOT NULL REFERENCES api.audience ON DELETE CASCADE,
  page int NOT NULL,
  first_row int NOT NULL,
  entries jsonb NOT NULL,
  PRIMARY KEY (audience_id, page)
);
