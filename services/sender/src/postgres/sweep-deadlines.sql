SELECT s.overdue, s.unconfirmed FROM sender.sweep_deadlines($1, $2, $3, $4) AS s
