-- $1: how many, $2: for how many milliseconds they are ours.
UPDATE receipts.webhook_spool AS s
SET relay_after = now() + make_interval(secs => $2::float8 / 1000)
WHERE s.id IN (
  SELECT due.id FROM receipts.webhook_spool AS due
  WHERE due.relay_after <= now()
  ORDER BY due.relay_after, due.id
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
)
RETURNING s.id, s.event_id, s.endpoint_id, s.value, s.packed
