-- Told least recently first; none within $2 milliseconds of the last time.
SELECT r.run_id
FROM receipts.run AS r
WHERE r.untold AND r.revision IS NOT NULL AND r.told_at <= to_timestamp(($3::float8 - $2::float8) / 1000)
ORDER BY r.told_at
LIMIT $1
FOR UPDATE OF r SKIP LOCKED
