-- Answers the ids under which evidence was parked, with it. The parked evidence stays in the row until clear-parked.sql: this
-- statement may have waited for the transaction that parked it, and only the row that it locked then shows what was parked.
INSERT INTO receipts.provider_message AS p (key, occurrence_id, attempt)
SELECT g.key, g.occurrence_id, g.attempt
FROM unnest($1::bytea[], $2::bytea[], $3::int[]) AS g (key, occurrence_id, attempt)
ORDER BY g.key
ON CONFLICT (key) DO UPDATE SET occurrence_id = excluded.occurrence_id, attempt = excluded.attempt
  WHERE p.occurrence_id IS NULL
RETURNING p.key, p.occurrence_id, p.attempt, p.parked
