UPDATE receipts.run AS r
SET untold = false, told_at = to_timestamp($2::float8 / 1000), sequence = r.sequence + 1
WHERE r.run_id = ANY ($1::bytea[])
