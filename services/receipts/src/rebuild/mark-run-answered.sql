INSERT INTO receipts.answered_chunk (run_id, chunk, positions)
SELECT $1::bytea, m.position / 500, bit_or(overlay(repeat('0', 500) PLACING '1' FROM m.position % 500 + 1)::bit(500))
FROM receipts.message AS m
WHERE m.occurrence_id > $1::bytea AND m.occurrence_id < $2::bytea AND m.position IS NOT NULL
GROUP BY m.position / 500
