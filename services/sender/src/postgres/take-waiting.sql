-- Due rows of each number, most urgent first, one priority after the other: over all of them a drained priority would make every
-- look walk its future rows. Rows that another instance has in hand are skipped.
WITH wanted AS (
  SELECT x.occurrence_id
  FROM unnest($1::uuid[], $2::int[]) AS n (number_id, free)
  CROSS JOIN LATERAL (
    SELECT w.occurrence_id
    FROM generate_series(1, 9) AS p (priority)
    CROSS JOIN LATERAL (
      SELECT v.occurrence_id, v.wake_at
      FROM sender.waiting v
      WHERE v.number_id = n.number_id AND v.priority = p.priority AND v.wake_at <= clock_timestamp() AND v.taken_until <= clock_timestamp()
      ORDER BY v.wake_at
      LIMIT n.free
    ) AS w
    ORDER BY p.priority, w.wake_at
    LIMIT n.free
  ) AS x
), free AS MATERIALIZED (
  SELECT w.occurrence_id FROM sender.waiting w
  WHERE w.occurrence_id IN (SELECT occurrence_id FROM wanted) AND w.taken_until <= clock_timestamp()
  FOR UPDATE SKIP LOCKED
)
UPDATE sender.waiting w
SET taken_until = clock_timestamp() + $3::int * interval '1 ms'
FROM free f
WHERE w.occurrence_id = f.occurrence_id
RETURNING w.occurrence_id, w.schedule_id, w.revision, w.number_id, w.priority, w.position, w.attempt::int AS attempt, w.reason,
  sender.ms(w.due_at)::double precision AS due_at, sender.ms(w.valid_until)::double precision AS valid_until,
  sender.ms(w.since)::double precision AS since, sender.ms(w.wake_at)::double precision AS wake_at,
  sender.ms(w.gives_up_at)::double precision AS gives_up_at
