SELECT m.status, m.reason, count(*)::int AS count
FROM receipts.message AS m
WHERE m.occurrence_id > $1::bytea AND m.occurrence_id < $2::bytea AND m.position IS NOT NULL
GROUP BY m.status, m.reason
