SELECT count(*)::float8 AS runs, count(*) FILTER (WHERE waiting IS NOT NULL)::float8 AS waiting,
  coalesce(sum(until_position - position), 0)::float8 AS messages
FROM scheduler.active_run
