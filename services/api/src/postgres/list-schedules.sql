SELECT s.state, r.outcome, r.completed_at, g.run_hold_reason,
  n.hold_reason AS number_hold_reason, n.hold_since AS number_hold_since, n.hold_until AS number_hold_until
FROM api.schedule AS s
LEFT JOIN receipts.run_public AS r ON r.run_id = s.run_id
LEFT JOIN sender.gate_public AS g ON g.schedule_id = s.id
LEFT JOIN sender.number_public AS n ON n.number_id = s.number_id
WHERE s.tenant_id = $1::uuid
  AND ($2::uuid IS NULL OR s.id < $2::uuid)
  AND ($3::text[] IS NULL OR CASE WHEN s.status = 'cancelled' THEN 'cancelled' WHEN r.completed_at IS NOT NULL THEN 'completed' ELSE 'active' END = ANY ($3::text[]))
  AND ($4::jsonb = '{}' OR s.labels @> $4::jsonb)
  AND ($5::timestamptz IS NULL OR s.due_at >= $5::timestamptz)
  AND ($6::timestamptz IS NULL OR s.due_at < $6::timestamptz)
ORDER BY s.id DESC
LIMIT $7::int
