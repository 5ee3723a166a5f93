-- What of a run is submitted or sent, in the order of ids, after $1 and before $2.
SELECT m.occurrence_id, m.facts, m.told_status
FROM receipts.message AS m
WHERE m.occurrence_id > $1::bytea AND m.occurrence_id < $2::bytea AND m.status IN ('submitted', 'sent') AND m.told_status IS NOT NULL
ORDER BY m.occurrence_id
LIMIT $3
