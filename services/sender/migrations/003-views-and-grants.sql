-- What other services may see and call. Everything else of this schema is the sender's own.

CREATE VIEW sender.gate_public AS
  SELECT g.schedule_id, g.revision, g.status, g.run_hold_reason FROM sender.gate g;

-- Holds that are in force; one that has run out is none.
CREATE VIEW sender.number_hold_public AS
  SELECT n.number_id, n.hold_reason AS reason, n.hold_since AS since, n.hold_until AS until
  FROM sender.number_state n
  WHERE n.hold_reason IS NOT NULL AND (n.hold_until IS NULL OR n.hold_until > now());

CREATE VIEW sender.number_public AS
  SELECT n.number_id, n.learned_rate,
    CASE WHEN held THEN n.hold_reason END AS hold_reason, CASE WHEN held THEN n.hold_since END AS hold_since,
    CASE WHEN held THEN n.hold_until END AS hold_until, CASE WHEN held THEN n.hold_detail END AS hold_detail
  FROM sender.number_state n
  CROSS JOIN LATERAL (SELECT n.hold_reason IS NOT NULL AND (n.hold_until IS NULL OR n.hold_until > now()) AS held) AS h;

CREATE VIEW sender.claim_public AS
  SELECT c.occurrence_id, c.schedule_id, c.revision, c.position, c.due_at, c.state::text AS state, c.step, c.attempt::int AS attempt, c.reason, c.error_code,
    c.deadline, c.next_attempt_at, c.provider_message_id, c.claimed_at, c.updated_at
  FROM sender.claim c;

CREATE VIEW sender.waiting_public AS
  SELECT w.occurrence_id, w.schedule_id, w.revision, w.position, w.due_at, w.valid_until, w.reason, w.since, w.wake_at, w.gives_up_at
  FROM sender.waiting w;

-- One row an attempt. An uncertain outcome gives way to the real one that came later.
CREATE VIEW sender.attempt_public AS
  SELECT b.occurrence_id, b.attempt::int AS attempt, b.begun_at, o.called_at, o.ended_at, o.outcome, o.error_code, o.provider_code, o.text,
    o.provider_message_id, o.waits::jsonb AS waits, o.trace_id
  FROM sender.attempt_begun b
  LEFT JOIN LATERAL (
    SELECT x.* FROM sender.attempt_outcome x
    WHERE x.occurrence_id = b.occurrence_id AND x.attempt = b.attempt
    ORDER BY (x.outcome = 'uncertain'), x.recorded_at
    LIMIT 1
  ) AS o ON true;

GRANT USAGE ON SCHEMA sender TO punctual_api, punctual_scheduler;

GRANT SELECT ON sender.gate_public, sender.number_hold_public TO punctual_api, punctual_scheduler;
GRANT SELECT ON sender.claim_public, sender.waiting_public, sender.attempt_public, sender.number_public TO punctual_api;

GRANT EXECUTE ON FUNCTION sender.change_gate(uuid, text, int, jsonb), sender.settle_cancel(uuid, bytea), sender.count_claims(bytea),
  sender.cancel_occurrences(uuid, bytea, bytea[], int[], timestamptz, int), sender.live_counts(bytea),
  sender.clear_number_hold(uuid) TO punctual_api;
GRANT EXECUTE ON FUNCTION sender.count_answered(bytea), sender.answered_in_run(bytea), sender.claimed_in_run(bytea),
  sender.refuse_unanswered(uuid, bytea[], int[], timestamptz, text, text) TO punctual_scheduler;

-- The sender changes its tables through functions that run with its own rights. It never writes the gate but for run holds.
GRANT EXECUTE ON FUNCTION sender.run_begin(bytea), sender.run_end(bytea), sender.stripe(uuid), sender.clear_number_hold(uuid),
  sender.refuse_unanswered(uuid, bytea[], int[], timestamptz, text, text) TO punctual_sender;
GRANT SELECT ON ALL TABLES IN SCHEMA sender TO punctual_sender;
GRANT UPDATE (first_outcomes, first_template_failures, run_hold_reason, run_hold_since, run_hold_detail, updated_at)
  ON sender.gate TO punctual_sender;
GRANT INSERT, UPDATE ON sender.claim TO punctual_sender;
GRANT INSERT ON sender.attempt_begun, sender.attempt_outcome, sender.evidence TO punctual_sender;
GRANT INSERT, UPDATE, DELETE ON sender.waiting, sender.outbox, sender.number_state, sender.template_hold, sender.suppression
  TO punctual_sender;
GRANT INSERT, UPDATE, DELETE ON sender.parked TO punctual_sender;
GRANT INSERT ON sender.outbox_parked TO punctual_sender;
