-- In the order of their ids: two transactions with common messages would otherwise wait for each other.
SELECT m.occurrence_id, m.facts, m.told_status
FROM receipts.message AS m
WHERE m.occurrence_id = ANY ($1::bytea[])
ORDER BY m.occurrence_id
FOR UPDATE
