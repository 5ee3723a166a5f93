SELECT sender.clear_number_hold($1)
