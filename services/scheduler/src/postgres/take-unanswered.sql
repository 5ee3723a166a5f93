SELECT * FROM scheduler.take_unanswered($1, $2, $3)
