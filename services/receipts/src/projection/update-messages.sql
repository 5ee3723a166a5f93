-- The rows are locked by this transaction. $9: the facts, one JSON text a line (see insert-messages.sql).
UPDATE receipts.message AS m
SET schedule_id = coalesce(m.schedule_id, n.schedule_id), tenant_id = coalesce(m.tenant_id, n.tenant_id), position = n.position, revision = n.revision, status = n.status,
  reason = n.reason, correction = n.correction, told_status = n.told_status, sequence = n.sequence, facts = n.facts::jsonb,
  updated_at = to_timestamp($12::float8 / 1000)
FROM ROWS FROM (
  unnest($1::bytea[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::int[]), unnest($5::int[]), unnest($6::text[]),
  unnest($7::text[]), unnest($8::boolean[]), unnest($10::text[]), unnest($11::bigint[]), string_to_table($9::text, E'\n')
) AS n (occurrence_id, schedule_id, tenant_id, position, revision, status, reason, correction, told_status, sequence, facts)
WHERE m.occurrence_id = n.occurrence_id
