SELECT scheduler.release_again($1, $2) AS done
