-- $1: ids of messages, one after the other. $2: a line for each: attempt, kind, instant of the provider, its code, our code, its
-- id of the message, when we recorded it, the text, between tabs, empty for null. Answers the places (from 1) of what was not
-- known yet.
WITH given AS MATERIALIZED (
  SELECT c.place, c.part AS occurrence_id, split_part(l.line, E'\t', 1)::int AS attempt, split_part(l.line, E'\t', 2) AS kind,
    to_timestamp(split_part(l.line, E'\t', 3)::float8 / 1000) AS provider_at, split_part(l.line, E'\t', 4) AS provider_code, l.line
  FROM receipts.cut($1::bytea, 20) AS c
  JOIN string_to_table($2::text, E'\n') WITH ORDINALITY AS l (line, place) ON l.place = c.place
), fresh AS (
  INSERT INTO receipts.evidence AS t (occurrence_id, attempt, kind, provider_at, provider_code, code, provider_message_id, recorded_at, text)
  SELECT g.occurrence_id, g.attempt, g.kind, g.provider_at, g.provider_code, nullif(split_part(g.line, E'\t', 5), ''),
    nullif(split_part(g.line, E'\t', 6), ''), to_timestamp(split_part(g.line, E'\t', 7)::float8 / 1000),
    nullif(split_part(g.line, E'\t', 8), '')
  FROM given AS g
  ORDER BY g.occurrence_id, g.attempt, g.kind, g.provider_at, g.provider_code
  ON CONFLICT DO NOTHING
  RETURNING t.occurrence_id, t.attempt, t.kind, t.provider_at, t.provider_code
)
SELECT g.place
FROM given AS g JOIN fresh AS f USING (occurrence_id, attempt, kind, provider_at, provider_code)
