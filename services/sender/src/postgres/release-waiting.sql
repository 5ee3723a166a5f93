UPDATE sender.waiting w SET taken_until = '-infinity'
WHERE w.occurrence_id IN (
  SELECT x.occurrence_id FROM sender.waiting x WHERE x.occurrence_id = ANY ($1::bytea[]) ORDER BY x.occurrence_id FOR UPDATE
)
