SELECT scheduler.end_watch($1, $2) AS done
