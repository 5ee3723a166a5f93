-- Null ends the sweep of a run.
UPDATE receipts.run AS r
SET evidence_told_until = n.until, evidence_ends_at = CASE WHEN n.until IS NULL THEN NULL ELSE r.evidence_ends_at END
FROM unnest($1::bytea[], $2::bytea[]) AS n (run_id, until)
WHERE r.run_id = n.run_id
