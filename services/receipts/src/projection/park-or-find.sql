-- Evidence that has only the provider's id: answers our message where it is known, and keeps the evidence where it is not.
-- The row's unique key is the lock: whoever stores the id afterwards finds the evidence in the row.
INSERT INTO receipts.provider_message AS p (key, parked, parked_at)
SELECT g.key, g.parked::jsonb, to_timestamp($3::float8 / 1000)
FROM ROWS FROM (unnest($1::bytea[]), string_to_table($2::text, E'\n')) AS g (key, parked)
ORDER BY g.key
ON CONFLICT (key) DO UPDATE SET
  -- A row that nobody claims must not grow for ever: a message has no more than a handful of different statuses.
  parked = CASE WHEN p.occurrence_id IS NULL AND jsonb_array_length(p.parked) < 100 THEN p.parked || excluded.parked ELSE p.parked END
RETURNING p.key, p.occurrence_id, p.attempt
