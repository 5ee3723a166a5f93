-- What is known of every run: the plan of its newest revision and how far it came. Can be rebuilt from the streams and the claims.
CREATE TABLE scheduler.run (
  run_id bytea PRIMARY KEY CHECK (octet_length(run_id) = 12),
  schedule_id uuid NOT NULL,
  tenant_id uuid NOT NULL,
  number_id uuid NOT NULL,
  provider_identity text NOT NULL,
  slot text NOT NULL,
  time_zone text NOT NULL,
  -- Of the schedule's stream: an event that is not newer than this has been applied already.
  version int NOT NULL CHECK (version > 0),
  revision int NOT NULL CHECK (revision BETWEEN 1 AND version),
  audience_id uuid NOT NULL,
  total int NOT NULL CHECK (total > 0),
  priority smallint NOT NULL CHECK (priority BETWEEN 1 AND 9),
  due_at timestamptz NOT NULL,
  valid_until timestamptz,
  traceparent text,
  -- planned: in the due index or active. released: at its end, answers are awaited. ended: nothing is left to do.
  status text NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'released', 'ended')),
  -- Positions below were handed over, or found to be claimed already.
  released_position int NOT NULL DEFAULT 0 CHECK (released_position BETWEEN 0 AND total),
  -- An earlier revision may have claims anywhere in the audience: a release of this one leaves those out.
  released_before boolean NOT NULL DEFAULT false,
  releases_again smallint NOT NULL DEFAULT 0 CHECK (releases_again BETWEEN 0 AND 3),
  -- When to look for released recipients without an answer.
  check_at timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((check_at IS NOT NULL) = (status = 'released'))
);
CREATE INDEX run_schedule ON scheduler.run (schedule_id);
CREATE INDEX run_check ON scheduler.run (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX run_ended ON scheduler.run (changed_at) WHERE status = 'ended';

-- The due index: a row for each planned run and none for its recipients, in one partition per UTC day, which goes as a whole.
CREATE TABLE scheduler.due_entry (
  due_at timestamptz NOT NULL,
  run_id bytea NOT NULL,
  revision int NOT NULL,
  PRIMARY KEY (due_at, run_id)
) PARTITION BY RANGE (due_at);

-- Runs that are due and not at their end. Stays small: everything later is in the due index only.
CREATE TABLE scheduler.active_run (
  run_id bytea PRIMARY KEY,
  schedule_id uuid NOT NULL,
  number_id uuid NOT NULL,
  provider_identity text NOT NULL,
  revision int NOT NULL,
  audience_id uuid NOT NULL,
  priority smallint NOT NULL,
  -- Virtual time: what was released, raised to the number's lane time whenever the run comes back from not competing.
  served bigint NOT NULL DEFAULT 0,
  position int NOT NULL DEFAULT 0,
  until_position int NOT NULL,
  due_at timestamptz NOT NULL,
  valid_until timestamptz,
  traceparent text,
  -- Which of its recipients to leave out: those with a claim (after a revision), or with any answer (released again).
  leave_out text CHECK (leave_out IN ('claimed', 'answered')),
  -- 0: the first release of this revision; 1 to 3: released again.
  pass smallint NOT NULL DEFAULT 0 CHECK (pass BETWEEN 0 AND 3),
  -- Found not to be releasable: out of the way of the others until an event, or the sweep, finds that over.
  waiting text CHECK (waiting IN ('paused', 'held', 'cancelled', 'revised', 'expired', 'no_gate', 'no_audience')),
  waiting_since timestamptz,
  looked_at timestamptz,
  CHECK (position BETWEEN 0 AND until_position),
  CHECK ((waiting IS NULL) = (waiting_since IS NULL)),
  CHECK ((waiting IS NULL) = (looked_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000);
CREATE INDEX active_run_next ON scheduler.active_run (number_id, priority, served, run_id) WHERE waiting IS NULL;
CREATE INDEX active_run_schedule ON scheduler.active_run (schedule_id);
CREATE INDEX active_run_expiry ON scheduler.active_run (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX active_run_waiting ON scheduler.active_run (looked_at) WHERE waiting IS NOT NULL;

-- How many records the lane of a number may take, as its sender said last, and who is releasing for it just now.
CREATE TABLE scheduler.number_credit (
  number_id uuid PRIMARY KEY,
  credit int NOT NULL CHECK (credit >= 0),
  reported_at timestamptz NOT NULL,
  sender text NOT NULL,
  -- Per priority, the virtual time of the run that was served last: where a run that joins begins.
  lane_time bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0,0,0,0}',
  lease_holder text,
  -- Without a holder: when the last release ended, so that numbers take turns.
  lease_until timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE scheduler.outbox (
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
CREATE INDEX outbox_lane ON scheduler.outbox (lane, id);

-- Rows that can't be encoded: kept with the reason, out of the way of the others.
CREATE TABLE scheduler.outbox_parked (
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
