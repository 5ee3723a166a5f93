-- The gate's own record. One writer: the sender; other services come through the functions of 002 and the views of 003.
-- Lock order of every function here: stripes, claims, waiting rows, gate rows, each by id. Another order deadlocks.

-- What the schedule allows now. Written by sender.change_gate only, in the transaction that changes the schedule;
-- the sender itself writes nothing but the hold of a run whose messages can only fail.
CREATE TABLE sender.gate (
  schedule_id             uuid PRIMARY KEY,
  tenant_id               uuid NOT NULL,
  number_id               uuid NOT NULL,
  mode                    text NOT NULL CHECK (mode IN ('test', 'live')),
  channel                 text NOT NULL CHECK (channel IN ('whatsapp', 'sms')),
  category                text,
  revision                int NOT NULL CHECK (revision >= 1),
  status                  text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'cancelled')),
  on_uncertain            text NOT NULL CHECK (on_uncertain IN ('leave', 'resend')),
  retry_delays_ms         int[] NOT NULL,
  run_id                  bytea NOT NULL CHECK (length(run_id) = 12),
  hold_give_up_ms         bigint NOT NULL CHECK (hold_give_up_ms > 0),
  cancelled_at            timestamptz,
  run_hold_reason         text,
  run_hold_since          timestamptz,
  run_hold_detail         text,
  -- The first outcomes of a revision: counted to ten, then left alone, so that a running campaign does not update this row.
  first_outcomes          int NOT NULL DEFAULT 0,
  first_template_failures int NOT NULL DEFAULT 0 CHECK (first_template_failures <= first_outcomes),
  updated_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((status = 'cancelled') = (cancelled_at IS NOT NULL)),
  CHECK ((run_hold_reason IS NULL) = (run_hold_since IS NULL))
) WITH (fillfactor = 80);

-- One row per occurrence that the gate has answered for good, or let through. Partitioned by the day in the id's first four
-- bytes, so that old ones are dropped and not deleted.
CREATE TABLE sender.claim (
  occurrence_id       bytea NOT NULL CHECK (length(occurrence_id) = 20),
  schedule_id         uuid NOT NULL,
  number_id           uuid NOT NULL,
  revision            int NOT NULL,
  position            int NOT NULL,
  priority            smallint NOT NULL,
  attempt             smallint NOT NULL,
  retries_used        smallint NOT NULL DEFAULT 0,
  step                int NOT NULL DEFAULT 1 CHECK (step >= 1),
  due_at              timestamptz NOT NULL,
  valid_until         timestamptz,
  -- Of the last attempt: no answer is waited for after it.
  deadline            timestamptz,
  -- When the sweeper has to look: the deadline while sending, the end of the evidence window while uncertain.
  sweep_at            timestamptz,
  next_attempt_at     timestamptz,
  -- The first wait after a claim; a hold's seven days count from here however often the reason changes.
  held_since          timestamptz,
  called_at           timestamptz,
  claimed_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  state               text COLLATE "C" NOT NULL,
  reason              text,
  error_code          text,
  provider_message_id text,
  PRIMARY KEY (occurrence_id),
  CONSTRAINT claim_state_known CHECK (state IN
    ('sending', 'accepted', 'failed', 'retry_wait', 'uncertain', 'unconfirmed', 'refused', 'cancelled', 'expired')),
  -- Only a final answer of the gate can come without an attempt.
  CONSTRAINT claim_attempted CHECK (attempt >= 1 AND deadline IS NOT NULL
    OR attempt = 0 AND deadline IS NULL AND state IN ('refused', 'cancelled', 'expired', 'failed')),
  CONSTRAINT claim_swept CHECK ((sweep_at IS NOT NULL) = (state IN ('sending', 'uncertain'))),
  CONSTRAINT claim_next_attempt CHECK (
    CASE state WHEN 'retry_wait' THEN next_attempt_at IS NOT NULL WHEN 'uncertain' THEN true ELSE next_attempt_at IS NULL END),
  CONSTRAINT claim_reason CHECK (state NOT IN ('refused', 'cancelled', 'expired', 'uncertain') OR reason IS NOT NULL),
  CONSTRAINT claim_error CHECK (state <> 'failed' OR error_code IS NOT NULL)
) PARTITION BY RANGE (occurrence_id);

-- Small, whatever the number of claims: only what is in flight or uncertain is in it.
CREATE INDEX claim_sweep ON sender.claim (sweep_at) WHERE sweep_at IS NOT NULL;

-- Two insert-only rows an attempt: begun with the claim, before the socket is written; the outcome when it is known.
-- An attempt can have an uncertain outcome and a real one later.
CREATE TABLE sender.attempt_begun (
  occurrence_id bytea NOT NULL,
  attempt       smallint NOT NULL CHECK (attempt >= 1),
  begun_at      timestamptz NOT NULL,
  instance      text NOT NULL,
  PRIMARY KEY (occurrence_id, attempt)
) PARTITION BY RANGE (occurrence_id);

CREATE TABLE sender.attempt_outcome (
  occurrence_id       bytea NOT NULL,
  attempt             smallint NOT NULL CHECK (attempt >= 1),
  outcome             text NOT NULL CHECK (outcome IN ('accepted', 'failed', 'retry', 'not_sent', 'uncertain')),
  called_at           timestamptz,
  ended_at            timestamptz NOT NULL,
  recorded_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- False: it came after the claim had moved on.
  applied             boolean NOT NULL,
  error_code          text,
  provider_code       text,
  text                text,
  provider_message_id text,
  trace_id            text,
  waits               json,
  PRIMARY KEY (occurrence_id, attempt, outcome),
  CHECK (outcome NOT IN ('failed', 'retry', 'uncertain') OR error_code IS NOT NULL)
) PARTITION BY RANGE (occurrence_id);

-- What providers said about an attempt, whatever the claim's state. Attempt 0 only when no claim existed.
CREATE TABLE sender.evidence (
  occurrence_id       bytea NOT NULL,
  attempt             smallint NOT NULL CHECK (attempt >= 0),
  kind                text NOT NULL CHECK (kind IN ('sent', 'delivered', 'read', 'failed', 'held', 'played')),
  provider_at         timestamptz NOT NULL,
  recorded_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  provider_message_id text,
  code                text,
  provider_code       text,
  text                text,
  PRIMARY KEY (occurrence_id, attempt, kind)
) PARTITION BY RANGE (occurrence_id);

-- What waits for longer than a lane may: retries and holds. A row stays until the gate has answered.
CREATE TABLE sender.waiting (
  occurrence_id bytea PRIMARY KEY CHECK (length(occurrence_id) = 20),
  schedule_id   uuid NOT NULL,
  number_id     uuid NOT NULL,
  revision      int NOT NULL,
  position      int NOT NULL,
  priority      smallint NOT NULL CHECK (priority BETWEEN 1 AND 9),
  -- 0: no claim yet, so a revision of the schedule removes the row.
  attempt       smallint NOT NULL CHECK (attempt >= 0),
  due_at        timestamptz NOT NULL,
  valid_until   timestamptz,
  since         timestamptz NOT NULL,
  wake_at       timestamptz NOT NULL,
  gives_up_at   timestamptz NOT NULL,
  ends_at       timestamptz NOT NULL GENERATED ALWAYS AS (LEAST(gives_up_at, valid_until)) STORED,
  -- A lane has it until then; afterwards it is handed out again.
  taken_until   timestamptz NOT NULL DEFAULT '-infinity',
  reason        text NOT NULL,
  CHECK (wake_at <= gives_up_at)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- One priority at a time is read: over all of them a drained priority makes every look walk its future rows.
CREATE INDEX waiting_wake ON sender.waiting (number_id, priority, wake_at);
CREATE INDEX waiting_schedule ON sender.waiting (schedule_id);
CREATE INDEX waiting_ends ON sender.waiting (ends_at);

-- Records without a place: the schedule is unknown to the gate, or the bytes can't be read. Never claimed, never lost.
CREATE TABLE sender.parked (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key           bytea NOT NULL,
  value         bytea NOT NULL,
  reason        text NOT NULL,
  parked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Known when the record could be read: then it is offered again as soon as its schedule is.
  schedule_id   uuid,
  number_id     uuid,
  revision      int,
  position      int,
  priority      smallint,
  due_at        timestamptz,
  valid_until   timestamptz,
  CHECK (num_nulls(schedule_id, number_id, revision, position, priority, due_at) IN (0, 6)),
  CHECK (schedule_id IS NULL OR length(key) = 20)
);
CREATE UNIQUE INDEX parked_once ON sender.parked (key, sha256(value));
CREATE INDEX parked_schedule ON sender.parked (schedule_id) WHERE schedule_id IS NOT NULL;

-- What is known of a number beside its configuration.
CREATE TABLE sender.number_state (
  number_id    uuid PRIMARY KEY,
  learned_rate double precision CHECK (learned_rate > 0),
  hold_reason  text CHECK (hold_reason IN ('account', 'circuit', 'template')),
  hold_since   timestamptz,
  hold_until   timestamptz,
  hold_detail  text,
  updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((hold_reason IS NULL) = (hold_since IS NULL)),
  CHECK (hold_reason IS NOT NULL OR hold_until IS NULL AND hold_detail IS NULL)
) WITH (fillfactor = 70);

-- A template that its provider paused: account, name and language in one key.
CREATE TABLE sender.template_hold (
  template_key text PRIMARY KEY,
  since        timestamptz NOT NULL DEFAULT clock_timestamp(),
  until        timestamptz,
  detail       text
);

-- Who must not get messages of a tenant; category '*' is every category.
CREATE TABLE sender.suppression (
  tenant_id      uuid NOT NULL,
  channel        text NOT NULL CHECK (channel IN ('whatsapp', 'sms')),
  category       text NOT NULL,
  recipient_hash bytea NOT NULL,
  reason         text NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, channel, recipient_hash, category)
);

-- Events on their way to Kafka; the relay deletes them after the acknowledgement.
CREATE TABLE sender.outbox (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane    int NOT NULL,
  topic   text NOT NULL,
  key     bytea NOT NULL,
  headers jsonb,
  value   bytea,
  draft   json,
  CHECK (num_nonnulls(value, draft) = 1)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_lane ON sender.outbox (lane, id);

-- Rows that can't be encoded or that the broker would refuse for ever.
CREATE TABLE sender.outbox_parked (
  id        bigint PRIMARY KEY,
  lane      int NOT NULL,
  topic     text NOT NULL,
  key       bytea NOT NULL,
  headers   jsonb,
  value     bytea,
  draft     json,
  reason    text NOT NULL,
  parked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Partitions -------------------------------------------------------------------------------------------------------------

CREATE TABLE sender.claim_default PARTITION OF sender.claim DEFAULT WITH (fillfactor = 80);
CREATE TABLE sender.attempt_begun_default PARTITION OF sender.attempt_begun DEFAULT;
CREATE TABLE sender.attempt_outcome_default PARTITION OF sender.attempt_outcome DEFAULT;
CREATE TABLE sender.evidence_default PARTITION OF sender.evidence DEFAULT;
