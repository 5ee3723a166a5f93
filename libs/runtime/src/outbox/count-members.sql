-- Every relay of this outbox holds the same lock in shared mode: whoever is alive is counted, without a table to keep clean.
SELECT count(*)::int AS members
FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND mode = 'ShareLock'
  AND classid = $1::int AND objid = $2::int
  AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
