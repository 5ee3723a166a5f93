SELECT api.append($1::jsonb, $2::bytea, $3::bytea, $4::int[], $5::bytea[], $6::bytea[], $7::bytea[])
