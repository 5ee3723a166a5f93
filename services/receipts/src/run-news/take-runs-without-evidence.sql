-- Completed runs whose evidence window has ended, with the place up to which their messages were told.
SELECT r.run_id, r.evidence_told_until
FROM receipts.run AS r
WHERE r.evidence_ends_at <= to_timestamp($2::float8 / 1000)
ORDER BY r.evidence_ends_at
LIMIT $1
FOR UPDATE OF r SKIP LOCKED
