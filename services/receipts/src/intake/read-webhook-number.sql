SELECT n.number_id, n.provider, n.version, n.webhook_secret, n.webhook_verify_token
FROM api.number_public AS n
WHERE n.number_id = $1::uuid
