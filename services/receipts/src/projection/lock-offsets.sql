-- In one order for everybody. Who waits here sees what the holder committed, so a batch that two members were given is
-- projected by the first and skipped by the second.
SELECT o.topic, o.partition, o.next_offset::text, (extract(epoch FROM nullif(o.newest_at, '-infinity')) * 1000)::float8 AS newest_at_ms
FROM receipts.projector_offset AS o
JOIN unnest($1::text[], $2::int[]) AS wanted (topic, partition) ON wanted.topic = o.topic AND wanted.partition = o.partition
ORDER BY o.topic, o.partition
FOR UPDATE OF o
