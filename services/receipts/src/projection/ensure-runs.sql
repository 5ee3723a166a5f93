INSERT INTO receipts.run (run_id, schedule_id, tenant_id)
SELECT n.run_id, n.schedule_id, n.tenant_id
FROM unnest($1::bytea[], $2::uuid[], $3::uuid[]) AS n (run_id, schedule_id, tenant_id)
ORDER BY n.run_id
ON CONFLICT (run_id) DO NOTHING
