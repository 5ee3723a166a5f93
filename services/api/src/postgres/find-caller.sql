SELECT k.id AS key_id, k.scopes, t.id AS tenant_id, t.mode
FROM api.api_key AS k
JOIN api.tenant AS t ON t.id = k.tenant_id
WHERE k.key_hash = $1 AND k.revoked_at IS NULL
