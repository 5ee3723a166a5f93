UPDATE receipts.message AS m SET told_status = m.status WHERE m.occurrence_id = ANY (ARRAY(SELECT c.part FROM receipts.cut($1::bytea, 20) AS c))
