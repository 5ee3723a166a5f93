SELECT scheduler.drop_past_due_partitions() AS dropped
