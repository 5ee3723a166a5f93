-- What is on record of a run's messages, in the order of ids, after $1 and before $2, $3 of them.
WITH ids AS MATERIALIZED (
  SELECT u.occurrence_id FROM (
    (SELECT c.occurrence_id FROM sender.claim_public AS c
     WHERE c.occurrence_id > $1::bytea AND c.occurrence_id < $2::bytea ORDER BY c.occurrence_id LIMIT $3)
    UNION
    (SELECT w.occurrence_id FROM sender.waiting_public AS w
     WHERE w.occurrence_id > $1::bytea AND w.occurrence_id < $2::bytea ORDER BY w.occurrence_id LIMIT $3)
    UNION
    (SELECT DISTINCT e.occurrence_id FROM receipts.evidence AS e
     WHERE e.occurrence_id > $1::bytea AND e.occurrence_id < $2::bytea ORDER BY e.occurrence_id LIMIT $3)
  ) AS u
  ORDER BY u.occurrence_id
  LIMIT $3
)
SELECT i.occurrence_id,
  (SELECT to_jsonb(c) FROM sender.claim_public AS c WHERE c.occurrence_id = i.occurrence_id) AS claim,
  (SELECT to_jsonb(w) FROM sender.waiting_public AS w WHERE w.occurrence_id = i.occurrence_id) AS waiting,
  (SELECT coalesce(jsonb_agg(to_jsonb(a) ORDER BY a.attempt), '[]') FROM sender.attempt_public AS a
   WHERE a.occurrence_id = i.occurrence_id) AS attempts,
  (SELECT coalesce(jsonb_agg(to_jsonb(e)), '[]') FROM receipts.evidence AS e WHERE e.occurrence_id = i.occurrence_id) AS evidence
FROM ids AS i
ORDER BY i.occurrence_id
