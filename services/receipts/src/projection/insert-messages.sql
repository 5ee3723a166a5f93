-- $9: the facts, one JSON text a line; as an array each of its quotes would have to be escaped and read back.
-- A row that another transaction inserted meanwhile is left out of the answer: its facts have to be read and merged.
INSERT INTO receipts.message (occurrence_id, schedule_id, tenant_id, position, revision, status, reason, correction, told_status,
  sequence, facts, updated_at)
SELECT n.occurrence_id, n.schedule_id, n.tenant_id, n.position, n.revision, n.status, n.reason, n.correction, n.told_status,
  n.sequence, n.facts::jsonb, to_timestamp($12::float8 / 1000)
FROM ROWS FROM (
  unnest($1::bytea[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::int[]), unnest($5::int[]), unnest($6::text[]),
  unnest($7::text[]), unnest($8::boolean[]), unnest($10::text[]), unnest($11::bigint[]), string_to_table($9::text, E'\n')
) AS n (occurrence_id, schedule_id, tenant_id, position, revision, status, reason, correction, told_status, sequence, facts)
ORDER BY n.occurrence_id
ON CONFLICT (occurrence_id) DO NOTHING
RETURNING occurrence_id
