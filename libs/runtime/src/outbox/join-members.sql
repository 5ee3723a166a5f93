SELECT pg_try_advisory_lock_shared($1::int, $2::int) AS joined
