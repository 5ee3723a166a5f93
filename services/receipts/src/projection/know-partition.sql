INSERT INTO receipts.projector_offset (topic, partition, next_offset, newest_at)
VALUES ($1, $2, 0, '-infinity')
ON CONFLICT (topic, partition) DO NOTHING
