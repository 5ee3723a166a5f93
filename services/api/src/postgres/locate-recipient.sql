-- A hash can begin inside a neighbour's; the caller looks at multiples of 8 only.
SELECT c.audience_id, c.chunk, c.hashes, c.body
FROM api.audience_chunk AS c
WHERE c.audience_id = ANY (ARRAY(SELECT DISTINCT x.audience_id FROM api.content AS x WHERE x.schedule_id = $1::uuid))
  AND position($2::bytea IN c.hashes) > 0
ORDER BY c.audience_id = $3::uuid DESC, c.chunk
