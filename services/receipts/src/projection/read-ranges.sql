SELECT g.run_id, g.revision, g.from_position, g.until_position, g.count, g.status, g.reason, receipts.to_ms(g.at) AS at
FROM receipts.refused_range AS g
WHERE g.run_id = ANY ($1::bytea[])
