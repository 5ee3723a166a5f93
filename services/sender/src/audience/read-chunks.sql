SELECT c.audience_id, c.chunk, c.count, c.hashes, c.body
FROM unnest($1::uuid[], $2::int[]) AS asked (audience_id, chunk)
JOIN api.audience_chunk_public AS c ON c.audience_id = asked.audience_id AND c.chunk = asked.chunk
