SELECT l.sending::int AS sending, l.waiting::int AS waiting, r.outcome, r.completed_at, r.first_called_at, r.last_called_at,
  coalesce((
    SELECT jsonb_agg(jsonb_build_object('status', k.status, 'reason', k.reason, 'count', k.count))
    FROM receipts.run_count_public AS k WHERE k.run_id = $1::bytea
  ), '[]') AS counted
FROM sender.live_counts($1::bytea) AS l
LEFT JOIN receipts.run_public AS r ON r.run_id = $1::bytea
