SELECT s.id FROM api.schedule AS s
WHERE s.tenant_id = $1::uuid AND ((s.duplicate_hash = $2::bytea AND s.status = 'active') OR s.external_id = $3)
ORDER BY s.id
LIMIT 1
