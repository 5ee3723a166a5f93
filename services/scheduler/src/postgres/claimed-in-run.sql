-- Sorted and in one value: a row for each of a million claims would cost some hundred bytes each on our side.
SELECT coalesce(string_agg(substring(c.id FROM 13 FOR 8), ''::bytea ORDER BY c.id), ''::bytea) AS hashes
FROM sender.claimed_in_run($1) AS c(id)
