-- A run of Redis that nobody has seen has forgotten up to a second of bookings, so no slot begins in it before ARGV[2] microseconds
-- from now: by then every slot that a sender still holds from before is used or too old.
-- KEYS[1]: the epoch. ARGV[1]: the run id. Answers 1 when the run is new.
if redis.call('HGET', KEYS[1], 'run') == ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'start', string.format('%.0f', time[1] * 1000000 + time[2] + ARGV[2]))
return 1
