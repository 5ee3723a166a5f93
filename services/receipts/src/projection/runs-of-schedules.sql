SELECT r.run_id FROM receipts.run AS r WHERE r.schedule_id = ANY ($1::uuid[])
