INSERT INTO receipts.webhook_spool (event_id, endpoint_id, value, packed, received_at, relay_after)
SELECT n.event_id, n.endpoint_id, n.value, n.packed, to_timestamp(n.received_at_ms / 1000), now()
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::float8[], $5::boolean[]) AS n (event_id, endpoint_id, value, received_at_ms, packed)
