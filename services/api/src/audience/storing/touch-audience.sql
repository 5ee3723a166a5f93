UPDATE api.audience SET touched_at = now() WHERE id = $1 AND status = 'uploading' RETURNING id
