SELECT c.audience_id, c.chunk, c.body
FROM unnest($1::uuid[], $2::int[]) AS wanted (audience_id, chunk)
JOIN api.audience_chunk_public AS c ON c.audience_id = wanted.audience_id AND c.chunk = wanted.chunk
