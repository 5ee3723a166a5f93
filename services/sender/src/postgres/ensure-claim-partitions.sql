SELECT sender.ensure_claim_partitions($1)
