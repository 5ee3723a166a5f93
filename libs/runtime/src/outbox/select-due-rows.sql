-- Skips from lane to lane through the index (lane, id): an empty outbox costs one probe, a full one a probe and a short scan
-- per lane, however many rows wait.
WITH RECURSIVE lanes AS (
  (SELECT lane FROM {{schema}}.outbox ORDER BY lane LIMIT 1)
  UNION ALL
  SELECT (SELECT o.lane FROM {{schema}}.outbox o WHERE o.lane > l.lane ORDER BY o.lane LIMIT 1)
  FROM lanes l
  WHERE l.lane IS NOT NULL
)
SELECT r.id, l.lane, r.topic, r.key, r.value, r.draft, r.headers
FROM lanes l
CROSS JOIN LATERAL (
  SELECT o.id, o.topic, o.key, o.value, o.draft, o.headers
  FROM {{schema}}.outbox o
  WHERE o.lane = l.lane AND o.id <> ALL ($5::bigint[])
  ORDER BY o.id
  LIMIT CASE WHEN l.lane < 0 THEN $4::int * 4 ELSE $4::int END
) r
WHERE l.lane IS NOT NULL
  AND mod(mod(l.lane, $2::int) + $2::int, $2::int) = ANY ($1::int[])
  AND l.lane <> ALL ($3::int[])
ORDER BY l.lane, r.id
