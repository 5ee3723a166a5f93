SELECT c.prevented, c.state
FROM sender.cancel_occurrences($1::uuid, $2::bytea, ARRAY[$3::bytea], ARRAY[$4::int], $5::timestamptz, $6::int) AS c
