SELECT t.id, t.name, t.mode, t.created_at FROM api.tenant AS t WHERE t.id = $1::uuid
