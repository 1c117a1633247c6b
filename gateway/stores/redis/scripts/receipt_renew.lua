#!lua flags=allow-oom
-- KEYS: receipt. ARGV: token, lease ms.

local kept = redis.call('HMGET', KEYS[1], 'state', 'token')
if kept[2] ~= ARGV[1] then
  return 0
end
if kept[1] == 'claimed' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
elseif kept[1] == 'calling' then
  redis.call('HSET', KEYS[1], 'until', whole(clock() + tonumber(ARGV[2])))
end
return 1
