SELECT o.id AS occurrence_id,
  c.state, c.step AS claim_step, c.attempt AS claim_attempt, c.reason AS claim_reason, c.error_code AS claim_error_code,
  c.next_attempt_at, c.provider_message_id AS claim_provider_message_id, c.updated_at AS claim_updated_at,
  c.attempt > 0 AND c.state IN ('retry_wait', 'refused', 'cancelled', 'expired') AND EXISTS (
    SELECT 1 FROM sender.attempt_public AS a WHERE a.occurrence_id = o.id AND a.outcome = 'uncertain'
  ) AS was_uncertain,
  w.reason AS waiting_reason, w.since AS waiting_since, w.wake_at, w.gives_up_at,
  m.status, m.step, m.revision, m.reason, m.waiting_reason AS held_reason, m.waiting_since AS held_since, m.waiting_until AS held_until,
  m.gives_up_at AS held_gives_up_at, m.attempts, m.submitted_at, m.sent_at, m.delivered_at, m.read_at, m.failed_at,
  m.error_code, m.error_provider_code, m.error_text, m.error_at, m.provider_message_id, m.waits,
  r.status AS range_status, r.reason AS range_reason, r.at AS range_at
FROM unnest($1::bytea[], $2::int[]) WITH ORDINALITY AS o (id, position, place)
LEFT JOIN sender.claim_public AS c ON c.occurrence_id = o.id
LEFT JOIN sender.waiting_public AS w ON w.occurrence_id = o.id
LEFT JOIN receipts.message_public AS m ON m.occurrence_id = o.id
LEFT JOIN LATERAL (
  SELECT g.status, g.reason, g.at FROM receipts.range_public AS g
  WHERE g.run_id = $3::bytea AND o.position >= g.from_position AND o.position < g.until_position
  ORDER BY g.at
  LIMIT 1
) AS r ON true
ORDER BY o.place
