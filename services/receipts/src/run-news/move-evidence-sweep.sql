-- Null ends the sweep of the run.
UPDATE receipts.run AS r
SET evidence_told_until = $2::bytea, evidence_ends_at = CASE WHEN $2::bytea IS NULL THEN NULL ELSE r.evidence_ends_at END
WHERE r.run_id = $1::bytea
