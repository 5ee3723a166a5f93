-- Rows between two ids of which nothing is on record any more; $3: those of which there is, one after the other.
DELETE FROM receipts.message AS m
WHERE m.occurrence_id > $1::bytea AND m.occurrence_id <= $2::bytea
  AND m.occurrence_id <> ALL (ARRAY(SELECT c.part FROM receipts.cut($3::bytea, 20) AS c))
