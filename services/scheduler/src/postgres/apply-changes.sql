SELECT * FROM scheduler.apply_changes($1, $2, $3, $4, $5)
