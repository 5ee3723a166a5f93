UPDATE receipts.run AS r SET untold = false, sequence = r.sequence + 1 WHERE r.run_id = ANY ($1::bytea[])
