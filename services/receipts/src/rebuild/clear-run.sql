WITH counts AS (DELETE FROM receipts.run_count WHERE run_id = $1::bytea)
DELETE FROM receipts.answered_chunk WHERE run_id = $1::bytea
