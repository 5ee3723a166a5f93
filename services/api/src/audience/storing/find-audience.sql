SELECT id::text, name, source, accepted, rejected, duplicates, chunk_count, columns, missing, set_hash, rejected_sample, warnings, sample, created_at
FROM api.audience
WHERE id = $1 AND tenant_id = $2 AND status = 'ready'
