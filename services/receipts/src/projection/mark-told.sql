UPDATE receipts.message AS m SET told_status = m.status WHERE m.occurrence_id = ANY ($1::bytea[])
