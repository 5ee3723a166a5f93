INSERT INTO sender.number_state (number_id, learned_rate) VALUES ($1, $2)
ON CONFLICT (number_id) DO UPDATE SET learned_rate = excluded.learned_rate, updated_at = clock_timestamp()
