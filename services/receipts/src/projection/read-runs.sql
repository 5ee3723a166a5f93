-- What status events say of the run of a message; without a lock, since it is written once for each revision.
SELECT r.run_id, r.schedule_id, r.tenant_id, r.revision, r.external_id, r.slot, r.mode, r.channel, r.labels,
  receipts.to_ms(r.due_at) AS due_at
FROM receipts.run AS r
WHERE r.run_id = ANY ($1::bytea[]) AND r.revision IS NOT NULL
