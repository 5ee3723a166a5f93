-- Ask by occurrence_id, a run's by its range of ids. Rows of which only evidence is known have no position yet; the api finds
-- their message in its chunk.
CREATE VIEW receipts.message_public AS
SELECT
  m.occurrence_id,
  substring(m.occurrence_id FROM 1 FOR 12) AS run_id,
  r.schedule_id,
  r.tenant_id,
  m.position,
  (m.facts -> 'own' ->> 'revision')::int AS revision,
  m.status,
  (m.facts -> 'own' ->> 'step')::int AS step,
  m.reason,
  CASE WHEN m.status = 'waiting' THEN m.reason END AS waiting_reason,
  CASE WHEN m.status = 'waiting' THEN receipts.instant(coalesce(m.facts -> 'own' ->> 'since', m.facts -> 'own' ->> 'at')) END AS waiting_since,
  CASE WHEN m.status = 'waiting' THEN receipts.instant(m.facts -> 'own' ->> 'until') END AS waiting_until,
  CASE WHEN m.status = 'waiting' THEN receipts.instant(m.facts -> 'own' ->> 'givesUpAt') END AS gives_up_at,
  coalesce((m.facts ->> 'attempts')::int, 0) AS attempts,
  receipts.instant(m.facts -> 'submitted' ->> 'at') AS submitted_at,
  receipts.instant(coalesce(m.facts ->> 'shownSentAt', m.facts ->> 'sentAt')) AS sent_at,
  receipts.instant(coalesce(m.facts ->> 'shownDeliveredAt', m.facts ->> 'deliveredAt')) AS delivered_at,
  receipts.instant(coalesce(m.facts ->> 'shownReadAt', m.facts ->> 'readAt')) AS read_at,
  receipts.instant(m.facts ->> 'failedAt') AS failed_at,
  m.facts -> 'error' ->> 'code' AS error_code,
  m.facts -> 'error' ->> 'providerCode' AS error_provider_code,
  m.facts -> 'error' ->> 'text' AS error_text,
  receipts.instant(m.facts -> 'error' ->> 'at') AS error_at,
  m.facts -> 'provider' ->> 'id' AS provider_message_id,
  coalesce((m.facts -> 'submitted' -> 'waits')::jsonb, '[]'::jsonb) AS waits,
  coalesce((m.facts ->> 'correction')::boolean, false) AS correction,
  (m.facts ->> 'sequence')::bigint AS sequence,
  m.updated_at
FROM receipts.message AS m
LEFT JOIN receipts.run AS r ON r.run_id = substring(m.occurrence_id FROM 1 FOR 12);

CREATE VIEW receipts.run_public AS
SELECT r.run_id, r.schedule_id, r.total, r.outcome, r.completed_at, r.first_called_at, r.last_called_at
FROM receipts.run AS r;

-- What waits is read live from its owner; here it would be counted twice.
CREATE VIEW receipts.run_count_public AS
SELECT c.run_id, c.status, nullif(c.reason, '') AS reason, c.count
FROM receipts.run_count AS c
WHERE c.status <> 'waiting' AND c.count <> 0;

-- Ranges of an older revision were taken back by the newer one.
CREATE VIEW receipts.range_public AS
SELECT g.run_id, g.from_position, g.until_position, g.count, g.status, g.reason, g.at
FROM receipts.refused_range AS g
JOIN receipts.run AS r ON r.run_id = g.run_id AND r.latest_revision = g.revision;

CREATE VIEW receipts.evidence_public AS
SELECT e.occurrence_id, e.attempt, e.kind, e.provider_at, e.recorded_at, e.code, nullif(e.provider_code, '') AS provider_code
FROM receipts.evidence AS e;

GRANT USAGE ON SCHEMA receipts TO punctual_api, punctual_receipts;
GRANT SELECT ON receipts.message_public, receipts.run_public, receipts.run_count_public, receipts.range_public,
  receipts.evidence_public TO punctual_api;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA receipts TO punctual_receipts;
GRANT EXECUTE ON FUNCTION receipts.count_answered(bytea, int, int) TO punctual_receipts;
GRANT EXECUTE ON FUNCTION receipts.to_ms(timestamptz), receipts.cut(bytea, int) TO punctual_receipts;
GRANT EXECUTE ON FUNCTION receipts.instant(text) TO punctual_receipts, punctual_api;

-- For a rebuild of the read model, and for what runs left behind.
GRANT USAGE ON SCHEMA sender TO punctual_receipts;
GRANT SELECT ON sender.claim_public, sender.attempt_public, sender.waiting_public TO punctual_receipts;
