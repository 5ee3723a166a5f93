-- Rows whose validity or hold is over, whatever number they wait for. Leased like rows that a lane takes.
WITH ended AS MATERIALIZED (
  SELECT w.occurrence_id FROM sender.waiting w
  WHERE w.ends_at <= clock_timestamp() AND w.taken_until <= clock_timestamp()
  ORDER BY w.ends_at
  LIMIT $1
  FOR UPDATE SKIP LOCKED
)
UPDATE sender.waiting w
SET taken_until = clock_timestamp() + $2::int * interval '1 ms'
FROM ended e
WHERE w.occurrence_id = e.occurrence_id
RETURNING w.occurrence_id, w.schedule_id, w.revision, w.number_id, w.priority, w.position, w.attempt::int AS attempt, w.reason,
  sender.ms(w.due_at)::double precision AS due_at, sender.ms(w.valid_until)::double precision AS valid_until,
  sender.ms(w.since)::double precision AS since, sender.ms(w.wake_at)::double precision AS wake_at,
  sender.ms(w.gives_up_at)::double precision AS gives_up_at
