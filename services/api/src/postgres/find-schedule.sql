SELECT s.state, encode(s.duplicate_hash, 'hex') AS duplicate_hash, s.updated_at,
  r.outcome, r.completed_at,
  g.run_hold_reason,
  n.hold_reason AS number_hold_reason, n.hold_since AS number_hold_since, n.hold_until AS number_hold_until
FROM api.schedule AS s
LEFT JOIN receipts.run_public AS r ON r.run_id = s.run_id
LEFT JOIN sender.gate_public AS g ON g.schedule_id = s.id
LEFT JOIN sender.number_public AS n ON n.number_id = s.number_id
WHERE s.tenant_id = $1::uuid
  AND s.id = (
    SELECT found.id FROM api.schedule AS found
    WHERE found.tenant_id = $1::uuid AND (found.id = $2::uuid OR found.external_id = $3 OR found.run_id = $4::bytea)
    LIMIT 1
  )
