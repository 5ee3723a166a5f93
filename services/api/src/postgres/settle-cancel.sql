SELECT * FROM api.settle_cancel($1::uuid, $2::uuid, $3::bytea, $4::int, $5::int, $6::timestamptz)
