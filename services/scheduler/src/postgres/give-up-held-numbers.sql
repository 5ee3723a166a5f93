SELECT scheduler.give_up_held_numbers($1, $2, $3) AS ended
