#!lua flags=allow-oom
-- KEYS: receipt. ARGV: token. An answer is never taken back.

local kept = redis.call('HMGET', KEYS[1], 'state', 'token')
if kept[2] == ARGV[1] and kept[1] ~= 'done' then
  redis.call('DEL', KEYS[1])
end
return 1
