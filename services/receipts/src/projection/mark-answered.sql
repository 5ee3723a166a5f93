INSERT INTO receipts.answered_chunk AS c (run_id, chunk, positions)
SELECT n.run_id, n.chunk, n.positions::bit(500)
FROM unnest($1::bytea[], $2::int[], $3::text[]) AS n (run_id, chunk, positions)
ORDER BY n.run_id, n.chunk
ON CONFLICT (run_id, chunk) DO UPDATE SET positions = c.positions | excluded.positions
