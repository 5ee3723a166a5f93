INSERT INTO sender.suppression (tenant_id, channel, category, recipient_hash, reason)
SELECT DISTINCT ON (u.tenant_id, u.channel, u.recipient_hash, u.category) u.tenant_id, u.channel, u.category, u.recipient_hash, u.reason
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[]) AS u (tenant_id, channel, category, recipient_hash, reason)
ORDER BY u.tenant_id, u.channel, u.recipient_hash, u.category
ON CONFLICT DO NOTHING
