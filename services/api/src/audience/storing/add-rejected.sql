INSERT INTO api.audience_rejected (audience_id, page, first_row, entries)
VALUES ($1, $2, $3, $4)
ON CONFLICT (audience_id, page) DO NOTHING
