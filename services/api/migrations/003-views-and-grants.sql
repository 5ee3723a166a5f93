CREATE VIEW api.number_public AS
SELECT n.id AS number_id, n.tenant_id, n.name, n.mode, n.channel, n.provider, n.provider_identity, n.provider_number_id, n.waba_id,
  n.app_id, n.rate_per_second, n.credentials, n.webhook_secret, n.webhook_verify_token, n.version, n.removed
FROM api.number AS n;

CREATE VIEW api.content_public AS
SELECT c.schedule_id, c.revision, c.tenant_id, c.audience_id, c.content, c.category, c.mode, c.labels, c.external_id,
  c.correlation_id, c.traceparent
FROM api.content AS c;

CREATE VIEW api.audience_chunk_public AS
SELECT c.audience_id, c.chunk, c.count, c.hashes, c.body FROM api.audience_chunk AS c;

GRANT USAGE ON SCHEMA api TO punctual_api, punctual_scheduler, punctual_sender, punctual_receipts;
GRANT SELECT ON api.number_public, api.content_public, api.audience_chunk_public TO punctual_scheduler, punctual_sender, punctual_receipts;

GRANT SELECT, INSERT ON api.tenant, api.schedule_event, api.schedule_receipt TO punctual_api;
GRANT SELECT, INSERT, UPDATE ON api.api_key, api.number, api.schedule, api.content TO punctual_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON api.idempotency, api.outbox, api.outbox_parked TO punctual_api;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA api TO punctual_api;

GRANT SELECT, INSERT, UPDATE, DELETE ON api.audience, api.audience_chunk, api.audience_rejected TO punctual_api;
