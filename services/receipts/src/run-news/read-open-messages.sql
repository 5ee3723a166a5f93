-- What of each run is submitted or sent, in the order of ids, after the place where its sweep was: $3 of each at most.
SELECT r.run_id, m.occurrence_id, m.facts, m.told_status
FROM unnest($1::bytea[], $2::bytea[]) AS r (run_id, after)
CROSS JOIN LATERAL (
  SELECT x.occurrence_id, x.facts, x.told_status
  FROM receipts.message AS x
  WHERE x.occurrence_id > r.after AND x.occurrence_id < r.run_id || '\xffffffffffffffffff'::bytea
    AND x.status IN ('submitted', 'sent') AND x.told_status IS NOT NULL
  ORDER BY x.occurrence_id
  LIMIT $3
) AS m
