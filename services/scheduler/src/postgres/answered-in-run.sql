SELECT coalesce(string_agg(substring(c.id FROM 13 FOR 8), ''::bytea ORDER BY c.id), ''::bytea) AS hashes
FROM sender.answered_in_run($1) AS c(id)
