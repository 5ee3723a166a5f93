SELECT api.create_tenant($1::jsonb, $2::jsonb, $3::bytea)
