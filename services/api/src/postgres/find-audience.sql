SELECT a.id, a.status, a.accepted, a.rejected, a.duplicates, a.chunk_count, a.columns, a.missing, a.set_hash
FROM api.audience AS a
WHERE a.tenant_id = $1::uuid AND a.id = $2::uuid
