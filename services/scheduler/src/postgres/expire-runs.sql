SELECT scheduler.expire_runs($1, $2) AS ended
