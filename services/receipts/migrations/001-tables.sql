-- One row for each message of which anything is known. `facts` are merged by operators that do not care for order
-- (src/status/message-facts.ts); the status is computed from them in the same process, so that the rule stands in one place.
-- `facts` also keep what was computed and is only shown (error, correction, sequence). They are json and not jsonb: written
-- three times and hardly ever read inside the database, and text costs a third to write.
CREATE TABLE receipts.message (
  occurrence_id bytea PRIMARY KEY CHECK (octet_length(occurrence_id) = 20),
  updated_at timestamptz NOT NULL,
  -- Null while only evidence is known: such a row is neither counted nor told.
  position int CHECK (position >= 0),
  status text NOT NULL CHECK (status IN ('waiting', 'submitted', 'sent', 'delivered', 'read', 'uncertain', 'unconfirmed',
    'failed', 'refused', 'cancelled', 'expired')),
  reason text,
  -- What the last status event said; null until one was told.
  told_status text,
  facts json NOT NULL,
  CHECK (position IS NOT NULL OR told_status IS NULL)
  -- A campaign's messages change together, a page of them in one transaction: with less than half free, every second update
  -- had to leave its page and touch the index (at 70 % full: 45 of 100; measured with bench/status-join).
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05);

-- What providers said, each thing once however often it came; the record that the read model is rebuilt from.
CREATE TABLE receipts.evidence (
  occurrence_id bytea NOT NULL CHECK (octet_length(occurrence_id) = 20),
  attempt int NOT NULL CHECK (attempt >= 0),
  kind text NOT NULL CHECK (kind IN ('unknown', 'sent', 'delivered', 'read', 'failed', 'held', 'played')),
  provider_at timestamptz NOT NULL,
  -- Empty where there is none: part of the key.
  provider_code text NOT NULL DEFAULT '',
  code text,
  text text,
  provider_message_id text,
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (occurrence_id, attempt, kind, provider_at, provider_code)
);

-- A provider's id of a message and ours. Evidence that has only the provider's is parked in the same row until ours is known:
-- both sides write this row, so the unique key is the one lock that keeps them from missing each other.
CREATE TABLE receipts.provider_message (
  -- SHA-256, cut: the provider's id contains the recipient's number.
  key bytea PRIMARY KEY CHECK (octet_length(key) = 16),
  occurrence_id bytea CHECK (octet_length(occurrence_id) = 20),
  attempt int,
  parked jsonb,
  parked_at timestamptz,
  CHECK ((occurrence_id IS NULL) = (attempt IS NULL)),
  CHECK ((parked IS NULL) = (parked_at IS NULL)),
  CHECK (occurrence_id IS NOT NULL OR parked IS NOT NULL)
);
CREATE INDEX provider_message_parked ON receipts.provider_message (parked_at) WHERE parked_at IS NOT NULL;

CREATE TABLE receipts.run (
  run_id bytea PRIMARY KEY CHECK (octet_length(run_id) = 12),
  schedule_id uuid NOT NULL,
  tenant_id uuid NOT NULL,
  -- The plan, of the highest revision that was told; null until then (a message can be known before its run).
  revision int,
  external_id text,
  number_id uuid,
  slot text,
  total int CHECK (total >= 0),
  due_at timestamptz,
  valid_until timestamptz,
  mode text,
  channel text,
  labels jsonb,
  -- The highest revision that anything named: ranges of older ones have been taken back.
  latest_revision int NOT NULL DEFAULT 0,
  released_at timestamptz,
  cancelled_at timestamptz,
  hold_reason text,
  hold_since timestamptz,
  hold_detail text,
  -- Ended holds, by the instant of their end: a hold that began before it is told no more.
  hold_ended_at timestamptz,
  hold_sequence bigint NOT NULL DEFAULT 0,
  first_called_at timestamptz,
  last_called_at timestamptz,
  outcome text CHECK (outcome IN ('succeeded', 'partly_failed', 'failed')),
  completed_at timestamptz,
  -- Of RunProgressed and RunCompleted.
  sequence bigint NOT NULL DEFAULT 0,
  -- Counts moved since they were told last, at told_at.
  untold boolean NOT NULL DEFAULT false,
  told_at timestamptz NOT NULL DEFAULT '-infinity',
  -- After it, submitted and sent messages without further evidence are told as final; null until the run is completed.
  evidence_ends_at timestamptz,
  evidence_told_until bytea,
  CHECK ((revision IS NULL) = (total IS NULL)),
  CHECK ((outcome IS NULL) = (completed_at IS NULL)),
  CHECK ((hold_reason IS NULL) = (hold_since IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX run_schedule ON receipts.run (schedule_id);
CREATE INDEX run_untold ON receipts.run (told_at) WHERE untold;
CREATE INDEX run_evidence_ends ON receipts.run (evidence_ends_at) WHERE evidence_ends_at IS NOT NULL;

-- Messages by status and reason, ranges of refused recipients included. Changed by the difference that a transaction made to
-- rows it has locked, never by counting events.
CREATE TABLE receipts.run_count (
  run_id bytea NOT NULL,
  status text NOT NULL,
  -- Empty where there is none: part of the key.
  reason text NOT NULL,
  count int NOT NULL,
  PRIMARY KEY (run_id, status, reason)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE receipts.refused_range (
  run_id bytea NOT NULL,
  revision int NOT NULL,
  from_position int NOT NULL CHECK (from_position >= 0),
  until_position int NOT NULL,
  status text NOT NULL CHECK (status IN ('refused', 'cancelled', 'expired', 'failed')),
  reason text NOT NULL,
  count int NOT NULL CHECK (count >= 0),
  at timestamptz NOT NULL,
  PRIMARY KEY (run_id, revision, from_position, until_position, status, reason),
  CHECK (until_position > from_position)
);

-- Which positions have facts of their own: one bit each, a row for 500. It outranks ranges without reading the messages.
CREATE TABLE receipts.answered_chunk (
  run_id bytea NOT NULL,
  chunk int NOT NULL CHECK (chunk >= 0),
  positions bit(500) NOT NULL,
  PRIMARY KEY (run_id, chunk)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- How far each partition was projected, moved in the transaction that projected it.
CREATE TABLE receipts.projector_offset (
  topic text NOT NULL,
  partition int NOT NULL,
  next_offset bigint NOT NULL,
  -- Of the newest record below next_offset: a record that is later than this and yet has a lower offset is of a new topic.
  newest_at timestamptz NOT NULL,
  PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Bodies that Kafka did not take in time; relayed when it does again.
CREATE TABLE receipts.webhook_spool (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id text NOT NULL,
  endpoint_id text NOT NULL,
  -- WebhookReceived, as it would have gone into the topic.
  value bytea NOT NULL,
  -- Whether the body inside is deflated: the record's header says so in Kafka.
  packed boolean NOT NULL,
  received_at timestamptz NOT NULL,
  -- Whoever relays the row has it until then; a second relay only makes a duplicate.
  relay_after timestamptz NOT NULL
);
CREATE INDEX webhook_spool_due ON receipts.webhook_spool (relay_after, id);

CREATE TABLE receipts.outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane int NOT NULL,
  topic text NOT NULL,
  key bytea NOT NULL,
  headers json,
  value bytea,
  draft jsonb,
  CHECK ((value IS NULL) <> (draft IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_lane ON receipts.outbox (lane, id);

-- Rows that could not be encoded or are too large for Kafka: put aside with the reason, for somebody to look at.
CREATE TABLE receipts.outbox_parked (
  id bigint PRIMARY KEY,
  lane int NOT NULL,
  topic text NOT NULL,
  key bytea NOT NULL,
  headers json,
  value bytea,
  draft jsonb,
  reason text NOT NULL,
  parked_at timestamptz NOT NULL DEFAULT now()
);
