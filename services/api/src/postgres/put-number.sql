SELECT api.put_number($1::jsonb, $2::bytea, $3::bytea, $4::bytea) AS written
