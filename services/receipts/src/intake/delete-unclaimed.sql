-- Evidence that nobody's message claimed: somebody else sends with the same number.
DELETE FROM receipts.provider_message AS p
WHERE p.key IN (
  SELECT old.key FROM receipts.provider_message AS old
  WHERE old.parked_at < now() - make_interval(secs => $1::float8 / 1000) AND old.occurrence_id IS NULL
  LIMIT $2
)
RETURNING 1 AS deleted
