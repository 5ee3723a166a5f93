SELECT n.id, n.name, n.kind, n.mode, n.channel, n.provider, n.provider_identity, n.provider_number_id, n.waba_id, n.app_id,
  n.rate_per_second::float8 AS rate_per_second, n.credentials_fingerprint, n.credentials_updated_at,
  n.webhook_secret IS NOT NULL AS has_webhook, n.version, n.created_at, n.updated_at,
  l.learned_rate::float8 AS learned_rate, l.hold_reason, l.hold_since, l.hold_until, l.hold_detail
FROM api.number AS n
LEFT JOIN sender.number_public AS l ON l.number_id = n.id
WHERE n.tenant_id = $1::uuid AND n.name = $2 AND NOT n.removed
