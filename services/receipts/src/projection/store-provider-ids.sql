-- $1: keys, one after the other; $2: messages, likewise. Answers the ids under which evidence was parked, with it. The parked
-- evidence stays in the row until clear-parked.sql: this statement may have waited for the transaction that parked it, and
-- only the row that it locked then shows what was parked.
INSERT INTO receipts.provider_message AS p (key, occurrence_id, attempt)
SELECT k.part, o.part, a.attempt
FROM receipts.cut($1::bytea, 16) AS k
JOIN receipts.cut($2::bytea, 20) AS o ON o.place = k.place
JOIN unnest($3::int[]) WITH ORDINALITY AS a (attempt, place) ON a.place = k.place
ORDER BY k.part
ON CONFLICT (key) DO UPDATE SET occurrence_id = excluded.occurrence_id, attempt = excluded.attempt
  WHERE p.occurrence_id IS NULL
RETURNING p.key, p.occurrence_id, p.attempt, p.parked
