WITH moved AS (
  DELETE FROM {{schema}}.outbox WHERE id = ANY ($1::bigint[])
  RETURNING id, lane, topic, key, value, draft, headers
)
INSERT INTO {{schema}}.outbox_parked (id, lane, topic, key, value, draft, headers, reason)
SELECT m.id, m.lane, m.topic, m.key, m.value, m.draft, m.headers, p.reason
FROM moved m
JOIN unnest($1::bigint[], $2::text[]) AS p (id, reason) USING (id)
