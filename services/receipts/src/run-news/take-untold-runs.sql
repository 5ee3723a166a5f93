SELECT r.run_id
FROM receipts.run AS r
WHERE r.untold AND r.revision IS NOT NULL
ORDER BY r.run_id
LIMIT $1
FOR UPDATE OF r SKIP LOCKED
