WITH touched AS (
  UPDATE api.audience SET touched_at = now() WHERE id = $1 AND status = 'uploading' RETURNING id
)
INSERT INTO api.audience_chunk (audience_id, chunk, count, hashes, body)
SELECT touched.id, part.chunk, part.count, part.hashes, part.body
FROM touched, unnest($2::int[], $3::int[], $4::bytea[], $5::bytea[]) AS part (chunk, count, hashes, body)
ON CONFLICT (audience_id, chunk) DO UPDATE SET count = excluded.count, hashes = excluded.hashes, body = excluded.body
RETURNING chunk
