-- Runs of which anything is on record, in the order of ids, after $1.
SELECT r.run_id, p.revision IS NOT NULL AS planned
FROM (
  SELECT run_id FROM receipts.run
  UNION
  SELECT substring(occurrence_id FROM 1 FOR 12) FROM receipts.evidence
) AS r
LEFT JOIN receipts.run AS p ON p.run_id = r.run_id
WHERE r.run_id > $1::bytea
ORDER BY r.run_id
LIMIT $2
