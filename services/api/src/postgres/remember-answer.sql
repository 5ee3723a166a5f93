SELECT api.remember_answer($1::uuid, $2::jsonb, $3::bytea, $4::timestamptz)
