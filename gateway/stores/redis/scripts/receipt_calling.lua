#!lua flags=allow-oom
-- KEYS: receipt. ARGV: token, lease ms, keep ms. Returns 0 when it is not the caller's.

local kept = redis.call('HMGET', KEYS[1], 'state', 'token')
if kept[2] ~= ARGV[1] or (kept[1] ~= 'claimed' and kept[1] ~= 'calling') then
  return 0
end
local till = whole(clock() + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'state', 'calling', 'until', till)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
