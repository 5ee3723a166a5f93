WITH touched AS (
  UPDATE api.audience SET touched_at = now() WHERE id = $1 AND status = 'uploading' RETURNING id
)
INSERT INTO api.audience_chunk (audience_id, chunk, count, hashes, body)
SELECT touched.id, part.chunk, part.count, substring($4::bytea FROM part.hashes_at FOR part.count * 8),
  substring($6::bytea FROM part.body_at FOR part.body_length)
FROM touched, unnest($2::int[], $3::int[], $5::int[], $7::int[], $8::int[]) AS part (chunk, count, hashes_at, body_at, body_length)
ON CONFLICT (audience_id, chunk) DO UPDATE SET count = excluded.count, hashes = excluded.hashes, body = excluded.body
RETURNING chunk
