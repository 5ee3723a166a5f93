-- The audience and the answer that is kept for a repeat appear together, or neither (PA208, PA409 of remember_answer).
UPDATE api.audience
SET status = 'ready', accepted = $3, rejected = $4, duplicates = $5, chunk_count = $6, missing = $7, set_hash = $8,
    rejected_sample = $9, warnings = $10, sample = $11, touched_at = now()
FROM api.remember_answer($2, $12::jsonb, $13::bytea, $14::timestamptz) AS remembered
WHERE id = $1 AND tenant_id = $2 AND (status = 'uploading' OR set_hash = $8)
RETURNING id
