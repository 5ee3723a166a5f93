SELECT chunk, hashes FROM api.audience_chunk_public WHERE audience_id = $1 AND chunk >= $2 ORDER BY chunk LIMIT $3
