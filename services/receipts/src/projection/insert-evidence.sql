-- Answers the places (from 1) in the arrays of what was not known yet.
WITH given AS MATERIALIZED (
  SELECT e.*, row_number() OVER () AS place
  FROM unnest($1::bytea[], $2::int[], $3::text[], $4::float8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::float8[])
    AS e (occurrence_id, attempt, kind, provider_at_ms, provider_code, code, text, provider_message_id, recorded_at_ms)
), fresh AS (
  INSERT INTO receipts.evidence AS t (occurrence_id, attempt, kind, provider_at, provider_code, code, text, provider_message_id, recorded_at)
  SELECT g.occurrence_id, g.attempt, g.kind, to_timestamp(g.provider_at_ms / 1000), g.provider_code, g.code, g.text,
    g.provider_message_id, to_timestamp(g.recorded_at_ms / 1000)
  FROM given AS g
  ORDER BY g.occurrence_id, g.attempt, g.kind, g.provider_at_ms, g.provider_code
  ON CONFLICT DO NOTHING
  RETURNING t.occurrence_id, t.attempt, t.kind, t.provider_at, t.provider_code
)
SELECT g.place::int FROM given AS g JOIN fresh AS f
  ON f.occurrence_id = g.occurrence_id AND f.attempt = g.attempt AND f.kind = g.kind
  AND f.provider_at = to_timestamp(g.provider_at_ms / 1000) AND f.provider_code = g.provider_code
