SELECT c.chunk, c.count, c.hashes, c.body FROM api.audience_chunk AS c WHERE c.audience_id = $1::uuid AND c.chunk = $2::int
