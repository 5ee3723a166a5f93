DELETE FROM api.idempotency AS i
WHERE i.ctid = ANY (ARRAY(
  SELECT old.ctid FROM api.idempotency AS old WHERE old.created_at < now() - interval '24 hours' LIMIT 5000
))
