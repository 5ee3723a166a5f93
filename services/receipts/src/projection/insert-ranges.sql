INSERT INTO receipts.refused_range (run_id, revision, from_position, until_position, status, reason, count, at)
SELECT n.run_id, n.revision, n.from_position, n.until_position, n.status, n.reason, n.count, to_timestamp(n.at_ms / 1000)
FROM unnest($1::bytea[], $2::int[], $3::int[], $4::int[], $5::text[], $6::text[], $7::int[], $8::float8[])
  AS n (run_id, revision, from_position, until_position, status, reason, count, at_ms)
ON CONFLICT DO NOTHING
