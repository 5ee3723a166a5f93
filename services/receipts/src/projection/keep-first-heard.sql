-- Evidence that came again: only what was heard before the known one is written. Rows are locked in order, as everywhere.
WITH earlier AS MATERIALIZED (
  SELECT t.ctid AS place, to_timestamp(g.recorded_at / 1000) AS recorded_at
  FROM unnest($1::bytea[], $2::int[], $3::text[], $4::float8[], $5::text[], $6::float8[])
    AS g (occurrence_id, attempt, kind, provider_at, provider_code, recorded_at)
  JOIN receipts.evidence AS t ON t.occurrence_id = g.occurrence_id AND t.attempt = g.attempt AND t.kind = g.kind
    AND t.provider_at = to_timestamp(g.provider_at / 1000) AND t.provider_code = g.provider_code
  WHERE t.recorded_at > to_timestamp(g.recorded_at / 1000)
  ORDER BY t.occurrence_id, t.attempt, t.kind, t.provider_at, t.provider_code
  FOR UPDATE OF t
)
UPDATE receipts.evidence AS t SET recorded_at = least(t.recorded_at, e.recorded_at) FROM earlier AS e WHERE t.ctid = e.place
