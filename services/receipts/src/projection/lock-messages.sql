-- $1: ids, one after the other. In the order of their ids: two transactions with common messages would otherwise wait for each
-- other.
SELECT m.occurrence_id, m.facts, m.told_status
FROM receipts.message AS m
WHERE m.occurrence_id = ANY (ARRAY(SELECT c.part FROM receipts.cut($1::bytea, 20) AS c))
ORDER BY m.occurrence_id
FOR UPDATE
