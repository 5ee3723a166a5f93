SELECT c.run_id, c.status, c.reason, c.count FROM receipts.run_count AS c WHERE c.run_id = ANY ($1::bytea[])
