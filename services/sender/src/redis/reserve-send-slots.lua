-- Books up to ARGV[4] slots of one number, ARGV[2] microseconds apart, the last one no further than ARGV[3] microseconds from now,
-- by the clock of Redis (GCRA at the plain rate, no bursts).
-- KEYS[1]: which run of Redis the slots belong to, and when slots may begin in it. KEYS[2]: the first free moment of the number.
-- Answers { microseconds until the first slot, slots booked }; { -1, 0 } when the caller does not know this run of Redis yet.
local epoch = redis.call('HMGET', KEYS[1], 'run', 'start')
if not epoch[1] or epoch[1] ~= ARGV[1] then return { -1, 0 } end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step = tonumber(ARGV[2])
local first = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), now, tonumber(epoch[2]))
local booked = math.min(tonumber(ARGV[4]), math.floor((now + tonumber(ARGV[3]) - first) / step) + 1)
if booked < 1 then return { first - now, 0 } end
local free = first + booked * step
redis.call('SET', KEYS[2], string.format('%.0f', free), 'PX', math.ceil((free - now) / 1000) + 2000)
return { first - now, booked }
