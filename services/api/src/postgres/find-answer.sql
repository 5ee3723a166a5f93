SELECT i.request_hash, i.status, i.headers, i.body
FROM api.idempotency AS i
WHERE i.tenant_id = $1::uuid AND i.endpoint = $2 AND i.key = $3 AND i.created_at > now() - interval '24 hours'
