-- Rows that a lane has in hand do not count.
SELECT CASE WHEN min(w.wake_at) IS NOT NULL
    THEN greatest(0, ceil(extract(epoch FROM min(w.wake_at) - clock_timestamp()) * 1000))
  END::double precision AS in_ms
FROM unnest($1::uuid[]) AS n (number_id)
CROSS JOIN generate_series(1, 9) AS p (priority)
CROSS JOIN LATERAL (
  SELECT v.wake_at FROM sender.waiting v
  WHERE v.number_id = n.number_id AND v.priority = p.priority AND v.taken_until <= clock_timestamp()
  ORDER BY v.wake_at
  LIMIT 1
) AS w
