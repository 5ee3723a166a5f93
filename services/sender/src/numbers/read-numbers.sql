SELECT n.number_id, n.tenant_id, n.mode, n.channel, n.provider, n.provider_identity, n.provider_number_id, n.waba_id, n.app_id,
  n.rate_per_second::double precision AS rate_per_second, n.version, n.removed
FROM api.number_public AS n
