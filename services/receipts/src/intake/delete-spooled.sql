DELETE FROM receipts.webhook_spool WHERE id = ANY ($1::bigint[])
