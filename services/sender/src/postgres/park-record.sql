INSERT INTO sender.parked (key, value, reason) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
