SELECT sender.refuse_unanswered($1, $2, $3, $4, $5, $6) AS refused
