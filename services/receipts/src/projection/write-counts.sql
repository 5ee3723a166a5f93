-- The runs are locked by this transaction, so the counts are written as they are.
INSERT INTO receipts.run_count AS c (run_id, status, reason, count)
SELECT n.run_id, n.status, n.reason, n.count
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::int[]) AS n (run_id, status, reason, count)
ORDER BY n.run_id, n.status, n.reason
ON CONFLICT (run_id, status, reason) DO UPDATE SET count = excluded.count
