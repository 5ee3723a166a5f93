SELECT api.create_api_key($1::jsonb, $2::bytea, $3::uuid, $4::jsonb, $5::bytea) AS created
