INSERT INTO api.audience (id, tenant_id, name, source, status, accepted, rejected, duplicates, chunk_count, columns, created_at, touched_at)
VALUES ($1, $2, $3, 'upload', 'uploading', 0, 0, 0, 0, $4, $5, now())
