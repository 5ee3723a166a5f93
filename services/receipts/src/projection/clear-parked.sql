UPDATE receipts.provider_message SET parked = NULL, parked_at = NULL WHERE key = ANY ($1::bytea[])
