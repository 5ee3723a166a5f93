UPDATE receipts.webhook_spool SET relay_after = now() WHERE id = ANY ($1::bigint[])
