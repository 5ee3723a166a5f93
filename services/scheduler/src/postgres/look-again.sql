SELECT * FROM scheduler.look_again($1, $2, $3, $4)
