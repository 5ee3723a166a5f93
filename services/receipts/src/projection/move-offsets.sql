UPDATE receipts.projector_offset AS o
SET next_offset = moved.next_offset, newest_at = greatest(o.newest_at, to_timestamp(moved.newest_at_ms / 1000))
FROM unnest($1::text[], $2::int[], $3::bigint[], $4::float8[]) AS moved (topic, partition, next_offset, newest_at_ms)
WHERE o.topic = moved.topic AND o.partition = moved.partition
