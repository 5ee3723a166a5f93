-- Messages that were known before the plan of their run; bounded by what a sender can accept before the plan arrives.
SELECT m.occurrence_id, m.facts, m.told_status
FROM receipts.message AS m
WHERE m.occurrence_id >= $1::bytea AND m.occurrence_id < $2::bytea AND m.told_status IS NULL AND m.position IS NOT NULL
ORDER BY m.occurrence_id
FOR UPDATE
