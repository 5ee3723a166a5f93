SELECT r.run_id, r.schedule_id, r.tenant_id, r.revision, r.external_id, r.number_id, r.slot, r.total,
  receipts.to_ms(r.due_at) AS due_at, receipts.to_ms(r.valid_until) AS valid_until, r.mode, r.channel, r.labels,
  r.latest_revision, receipts.to_ms(r.released_at) AS released_at, receipts.to_ms(r.cancelled_at) AS cancelled_at,
  r.hold_reason, receipts.to_ms(r.hold_since) AS hold_since, r.hold_detail, receipts.to_ms(r.hold_ended_at) AS hold_ended_at,
  r.hold_sequence::float8, receipts.to_ms(r.first_called_at) AS first_called_at, receipts.to_ms(r.last_called_at) AS last_called_at,
  r.outcome, receipts.to_ms(r.completed_at) AS completed_at, r.sequence::float8, r.untold, receipts.to_ms(r.evidence_ends_at) AS evidence_ends_at,
  EXISTS (SELECT 1 FROM receipts.refused_range AS g WHERE g.run_id = r.run_id) AS has_ranges
FROM receipts.run AS r
WHERE r.run_id = ANY ($1::bytea[])
ORDER BY r.run_id
FOR UPDATE OF r
