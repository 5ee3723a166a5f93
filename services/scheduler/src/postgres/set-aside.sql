-- Looked at again in a minute and not with the others: chunks don't come back by themselves.
UPDATE scheduler.active_run
SET waiting = 'no_audience', waiting_since = clock_timestamp(), looked_at = clock_timestamp() + interval '55 s'
WHERE run_id = ANY ($1) AND waiting IS NULL
