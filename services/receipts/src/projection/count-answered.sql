SELECT receipts.count_answered(n.run_id, n.from_position, n.until_position) AS answered
FROM unnest($1::bytea[], $2::int[], $3::int[]) WITH ORDINALITY AS n (run_id, from_position, until_position, place)
ORDER BY n.place
