DELETE FROM api.audience WHERE id = $1 AND status = 'uploading'
