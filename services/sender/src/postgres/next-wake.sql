-- Leased rows count from the end of their lease.
SELECT greatest(0, ceil(extract(epoch FROM min(greatest(w.wake_at, w.taken_until)) - clock_timestamp()) * 1000))::double precision AS in_ms
FROM unnest($1::uuid[]) AS n (number_id)
CROSS JOIN generate_series(1, 9) AS p (priority)
CROSS JOIN LATERAL (
  SELECT v.wake_at, v.taken_until FROM sender.waiting v
  WHERE v.number_id = n.number_id AND v.priority = p.priority
  ORDER BY v.wake_at
  LIMIT 1
) AS w
