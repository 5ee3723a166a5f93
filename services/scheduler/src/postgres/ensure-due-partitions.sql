SELECT scheduler.ensure_due_partitions($1)
