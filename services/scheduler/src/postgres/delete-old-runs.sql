DELETE FROM scheduler.run
WHERE run_id = ANY (ARRAY(
  SELECT run_id FROM scheduler.run WHERE status = 'ended' AND changed_at <= clock_timestamp() - $1 * interval '1 ms'
  ORDER BY changed_at LIMIT $2 FOR UPDATE SKIP LOCKED
))
RETURNING 1
